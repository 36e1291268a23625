//! Owns what is made of finished labels and of plans for labelling: the agreement of raters and
//! judges per locale, and the number of items that a claim needs; asks target models, and judges
//! what they answer. Must not know search.

pub mod agree;
pub mod benchmark;
pub mod corrected;
pub mod leaderboard;
pub mod gate;
pub mod power;
pub mod seegull;
pub mod target;
pub mod validate;
