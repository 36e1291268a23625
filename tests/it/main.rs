
mod agreement;
mod clusters;
mod openai;
