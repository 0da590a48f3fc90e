import { setTimeout } from 'node:timers/promises'

const MS = 15

/** Waits between two checks of a condition: a loop without a pause would take processor time from the process under test. */
export const wait = (): Promise<void> => setTimeout(MS)

/** Repeats a question until its answer is right. */
export async function until<T>(ask: () => Promise<T>, right: (answer: T) => boolean): Promise<T> {
  let answer = await ask()
  while (!right(answer)) {
    await wait()
    answer = await ask()
  }
  return answer
}
