import type { Figure } from './report.ts'

/** Options of a benchmark. */
export interface Options {
  /** The arguments of Node that start `svc`. */
  readonly svc: readonly string[]
  /** Rounds of each measurement. */
  readonly rounds: number
  /** Milliseconds of load in a round. */
  readonly ms: number
}

/** One benchmark: yields its results. */
export type Benchmark = (options: Options) => AsyncIterable<Figure>
