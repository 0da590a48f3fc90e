import type { ToolStep } from '@svc/core/contracts'

/** What a running call has told and nobody has heard yet. Its last word is a result, a question, or a failure. */
export interface Job {
  push(step: ToolStep): void
  fail(error: Error): void
  /** The next step; throws what it failed with. One waits at a time. */
  next(): Promise<ToolStep>
}

/** Progress that nobody takes is dropped, the oldest first. */
const MOST_STEPS = 256

export function createJob(): Job {
  const steps: ToolStep[] = []
  let failure: Error | undefined
  let waiting: { resolve(step: ToolStep): void; reject(error: Error): void } | undefined

  return {
    push(step) {
      if (waiting !== undefined) {
        waiting.resolve(step)
        waiting = undefined
        return
      }
      if (steps.length === MOST_STEPS) drop(steps)
      steps.push(step)
    },
    fail(error) {
      failure ??= error
      waiting?.reject(failure)
      waiting = undefined
    },
    next() {
      const step = steps.shift()
      if (step !== undefined) return Promise.resolve(step)
      if (failure !== undefined) return Promise.reject(failure)
      return new Promise((resolve, reject) => {
        waiting = { resolve, reject }
      })
    },
  }
}

function drop(steps: ToolStep[]): void {
  const oldest = steps.findIndex(step => step.type === 'progress' || step.type === 'log')
  steps.splice(Math.max(0, oldest), 1)
}
