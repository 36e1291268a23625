mod clusters;
