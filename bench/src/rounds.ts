import { middle } from './load.ts'

/** One thing of several that are measured in turn; answers its figure. */
export type Subject = () => Promise<number>

/** Figures of a subject, a round each. */
export type Rounds<N extends string> = Readonly<Record<N, readonly number[]>>

/** Measures all subjects in each round, beginning with another one each time, so that what else the machine does meets all alike. */
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

/** How two subjects compare: the middle of the rounds' own ratios. */
export const ratioOf = (figures: readonly number[], anchor: readonly number[]): number =>
  middle(figures.map((figure, round) => figure / anchor[round]!))
