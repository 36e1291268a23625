
mod agreement;
