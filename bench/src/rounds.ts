import { middle } from './load.ts'

/** One of several subjects that are measured in turn. Returns its value. */
export type Subject = () => Promise<number>

/** Values of a subject, one per round. */
export type Rounds<N extends string> = Readonly<Record<N, readonly number[]>>

/**
 * Measures all subjects in each round, starting with another one each time, so that other load on the machine affects all
 * alike.
 */
export async function interleave<N extends string>(subjects: Readonly<Record<N, Subject>>, rounds: number): Promise<Rounds<N>> {
  const names = Object.keys(subjects) as N[]
  const figures = Object.fromEntries(names.map(name => [name, [] as number[]])) as Record<N, number[]>
  for (let round = 0; round < rounds; round++) {
    for (let at = 0; at < names.length; at++) {
      const name = names[(at + round) % names.length]!
      figures[name].push(await subjects[name]())
    }
  }
  return figures
}

/** Compares two subjects: the median of the ratios per round. */
export const ratioOf = (figures: readonly number[], anchor: readonly number[]): number =>
  middle(figures.map((figure, round) => figure / anchor[round]!))

/** How far the ratios of the rounds lie apart: half of the middle half of them, as a part of their median. Above 0.1 a result is not steady. */
export function spreadOf(figures: readonly number[], anchor: readonly number[]): number {
  const ratios = figures.map((figure, round) => figure / anchor[round]!).toSorted((a, b) => a - b)
  const at = (part: number) => ratios[Math.round((ratios.length - 1) * part)]!
  return (at(0.75) - at(0.25)) / 2 / middle(ratios)
}
