import type { ServerResponse } from 'node:http'

/** Sends the last of an answer. */
export interface Outbox {
  post(res: ServerResponse, text: string): void
}

/**
 * Answers that are ready within one turn of the loop go out together: a write that finds its reader awake costs half of one that must wake it. Where the turn
 * before had but one, nobody waits.
 */
export function createOutbox(): Outbox {
  let ready: [ServerResponse, string][] = []
  let posted = 0
  let isBusy = false
  const endTurn = () => {
    isBusy = posted > 1
    posted = 0
    const now = ready
    ready = []
    for (const [res, text] of now) res.end(text)
  }
  return {
    post(res, text) {
      if (++posted === 1) setImmediate(endTurn)
      if (isBusy) ready.push([res, text])
      else res.end(text)
    },
  }
}
