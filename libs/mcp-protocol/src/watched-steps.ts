import type { ToolStep } from '@svc/core/contracts'

/** How the steps of a call ended: with their last word, by what was thrown, without a last word, or because their reader left before it. */
export type StepsEnd = { readonly last: ToolStep } | { readonly thrown: unknown } | 'mute' | 'left'

type Steps = AsyncIterable<ToolStep>
const DONE = { done: true, value: undefined } as const

/**
 * The steps of a call, of whose end somebody hears, exactly once and before their reader does. `open` begins the call, at the first `next`. By hand: generators
 * one in the other, in all the layers that a call goes through, cost more than what the layers do.
 */
export const watchedSteps = (open: () => Steps | Promise<Steps>, ended: (end: StepsEnd) => void): Steps => ({
  [Symbol.asyncIterator]: () => readingOf(open, ended),
})

function readingOf(open: () => Steps | Promise<Steps>, ended: (end: StepsEnd) => void): AsyncIterator<ToolStep> {
  let source: AsyncIterator<ToolStep> | undefined
  let state: 'new' | 'begun' | 'told' = 'new'
  let isOver = false
  const tell = (end: StepsEnd) => {
    if (state === 'begun') ended(end)
    state = 'told'
  }
  const read = async (steps: AsyncIterator<ToolStep>): Promise<IteratorResult<ToolStep>> => {
    const item = await steps.next()
    if (item.done) tell('mute')
    else if (isLast(item.value)) tell({ last: item.value })
    return item
  }
  return {
    async next() {
      if (isOver) return DONE
      try {
        if (source) return await read(source)
        state = 'begun'
        const opened = open()
        const steps = opened instanceof Promise ? await opened : opened
        // its reader may have left meanwhile: what has not begun does not begin
        return isOver ? DONE : await read((source = steps[Symbol.asyncIterator]()))
      } catch (error) {
        isOver = true
        tell({ thrown: error })
        throw error
      }
    },
    return() {
      isOver = true
      tell('left')
      return source?.return?.() ?? Promise.resolve(DONE)
    },
  }
}

const isLast = ({ type }: ToolStep) => type === 'result' || type === 'input'
