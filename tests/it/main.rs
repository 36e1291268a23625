mod tasks;
