import type { Json, PeerAnswer, Schedules, ScheduleSpec } from '@svc/core/contracts'

/** The topic of the item in the slot `PeerAnswers`. */
export const TOPIC = 'schedules'

/** A question of `svc schedules` to a worker of the running server, or to the plugins in its own process. */
export type SchedulesQuestion =
  | { readonly do: 'list' }
  | { readonly do: 'add'; readonly name: string; readonly spec: ScheduleSpec }
  | { readonly do: 'pause' | 'resume' | 'remove' | 'run'; readonly name: string }
  | { readonly do: 'preview'; readonly spec: ScheduleSpec; readonly count: number }

/** Answers the questions of commands. The service checks the principal. */
export const createAnswer = (schedules: Schedules): PeerAnswer => ({
  async *answer(message, ctx) {
    const question = message as unknown as SchedulesQuestion
    if (question.do === 'list') yield json(await schedules.list(ctx))
    else if (question.do === 'add') yield json(await schedules.add(question.name, question.spec, ctx))
    else if (question.do === 'preview')
      yield json(await schedules.preview(question.spec, { from: Date.now(), count: question.count, checksJob: true }, ctx))
    else if (question.do === 'run') yield json(await schedules.run(question.name, ctx))
    else if (question.do === 'pause' || question.do === 'resume') yield json(await schedules[question.do](question.name, ctx))
    else if (question.do === 'remove') await schedules.remove(question.name, ctx)
  },
})

const json = (value: object) => value as unknown as Json
