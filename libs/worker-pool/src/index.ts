export { type BoundedWork, createBoundedWork, workFile, type WorkOptions } from './bounded-work.ts'
export { type Asker, createSeats, type Seats, type SeatsOptions } from './seats.ts'
