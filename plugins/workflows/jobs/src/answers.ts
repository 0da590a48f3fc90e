import type { JobQuery, Jobs, Json, PeerAnswer } from '@svc/core/contracts'

/** The topic of the item in the slot `PeerAnswers`. */
export const TOPIC = 'jobs'

/** A question of `svc jobs` to a worker of the running server, or to the plugins in its own process. */
export type JobsQuestion =
  | { readonly do: 'list'; readonly query: JobQuery }
  | { readonly do: 'show'; readonly id: string; readonly entries: number }
  | { readonly do: 'kinds' }
  | { readonly do: 'cancel' | 'retry'; readonly id: string }

/** Answers the questions of commands. The service checks the principal. */
export const createAnswer = (jobs: Jobs): PeerAnswer => ({
  async *answer(message, ctx) {
    const question = message as unknown as JobsQuestion
    if (question.do === 'list') yield json(await jobs.list(question.query, ctx))
    else if (question.do === 'show')
      yield json({ job: await jobs.get(question.id, ctx), log: await jobs.log(question.id, question.entries, ctx) })
    else if (question.do === 'kinds') yield json(await jobs.kinds(ctx))
    else if (question.do === 'cancel') yield json(await jobs.cancel(question.id, ctx))
    else if (question.do === 'retry') yield json(await jobs.retry(question.id, ctx))
  },
})

const json = (value: object) => value as unknown as Json
