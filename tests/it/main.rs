
mod agreement;
mod clusters;
mod ledger;
mod openai;
