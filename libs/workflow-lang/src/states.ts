import type { StepStatus } from '@svc/core/contracts'

// Without dependencies: the console, in a browser, uses the same.

/** The node id of a step: `each/3/fetch#2` is drawn as `each/do/fetch`. A child with the name of a body belongs to that body. */
export function drawnIdOf(step: string, ids: ReadonlySet<string>): string | undefined {
  const [first = '', ...rest] = step.split('/').map(part => part.replace(/#\d+$/, ''))
  let id = first
  for (let at = 0; at + 1 < rest.length; at += 2) {
    const found = [`${id}/${rest[at]}/${rest[at + 1]}`, `${id}/do/${rest[at + 1]}`].find(item => ids.has(item))
    if (found === undefined) return undefined
    id = found
  }
  return ids.has(id) ? id : undefined
}

/** Name and sign of each state, so that states differ by more than a colour. */
export const STATES: Readonly<Record<StepStatus, { readonly sign: string; readonly word: string }>> = {
  completed: { sign: '✓', word: 'done' },
  running: { sign: '▶', word: 'running' },
  waiting: { sign: '…', word: 'waiting' },
  failed: { sign: '✗', word: 'failed' },
  cancelled: { sign: '–', word: 'cancelled' },
}
