import { setTimeout } from 'node:timers/promises'

const MS = 15

/** Between two looks at what is not so yet: who looks without a pause takes the processor from what is waited for. */
export const breath = (): Promise<void> => setTimeout(MS)

/** Asks again until the answer is right. */
export async function until<T>(ask: () => Promise<T>, right: (answer: T) => boolean): Promise<T> {
  let answer = await ask()
  while (!right(answer)) {
    await breath()
    answer = await ask()
  }
  return answer
}
