
mod agreement;
mod openai;
