import { asSvcError, codeOf, isTree, type Principal, SYSTEM, type SlotView, type SvcError, svcError } from '@svc/core'
import type { DefinedSchedule, Json, Schedule, ScheduleSpec } from '@svc/core/contracts'
import { checkZone, scheduleInvalid, type Timing, timingOf } from '@svc/plugin-kit/schedule-timing'
import { CATCH_UPS, OVERLAPS, type SchedulesConfig, specOf } from './settings.ts'

/** A schedule that this process knows, from whatever origin. */
export interface ScheduleDefinition {
  readonly name: string
  readonly origin: Schedule['origin']
  readonly spec: ScheduleSpec
  readonly timing: Timing
  /** The principal that its jobs run as. */
  readonly principal: Principal
}

const NAME = /^[a-z][a-z0-9_.-]{0,63}$/
const DAY_MS = 86_400_000
const MOST_INPUT = 1024 * 1024
const LONGEST_TEXT = 500
const MEMBERS: readonly string[] = [
  'description',
  'cron',
  'everyMs',
  'timeZone',
  'jitterMs',
  'catchUp',
  'overlap',
  'job',
] satisfies (keyof ScheduleSpec)[]

/** The beginning of the names of schedules in workflow definitions. */
const OF_WORKFLOW = 'workflow.'

/** Checks the name of an added schedule or of one of a plugin. Throws SCHEDULE_INVALID. */
export function checkName(name: unknown): asserts name is string {
  if (typeof name !== 'string' || !NAME.test(name))
    throw scheduleInvalid('name', 'must be a-z, 0-9, "_", "." or "-", begin with a letter, and have at most 64 characters')
  if (name.startsWith(OF_WORKFLOW)) throw scheduleInvalid('name', `must not begin with "${OF_WORKFLOW}"`)
}

/** Checks a schedule of a caller or of a plugin, which can be any value. Throws SCHEDULE_INVALID. */
export function checkSpec(given: unknown, zone: string): { readonly spec: ScheduleSpec; readonly timing: Timing } {
  if (!isTree(given)) throw scheduleInvalid('schedule', 'must be an object')
  const unknown = Object.keys(given).find(key => !MEMBERS.includes(key))
  if (unknown !== undefined) throw scheduleInvalid('schedule', `has the unknown member ${JSON.stringify(unknown.slice(0, 50))}`)
  const { description, jitterMs, catchUp, overlap, job, cron } = given
  const isText = (value: unknown, most: number) => typeof value === 'string' && value.length <= most && value.isWellFormed()
  if (description !== undefined && !isText(description, LONGEST_TEXT))
    throw scheduleInvalid('description', `must be a text of at most ${LONGEST_TEXT} characters`)
  if (cron !== undefined && typeof cron !== 'string') throw scheduleInvalid('cron', 'must be a text')
  if (jitterMs !== undefined && !(Number.isSafeInteger(jitterMs) && Number(jitterMs) >= 0 && Number(jitterMs) <= DAY_MS))
    throw scheduleInvalid('jitter', 'must be from 0 to one day')
  checkWord('catch_up', catchUp, CATCH_UPS)
  checkWord('overlap', overlap, OVERLAPS)
  checkJob(job)
  const spec = given as unknown as ScheduleSpec
  return { spec, timing: timingOf(spec, zone) }
}

function checkWord(field: string, value: unknown, words: readonly string[]): void {
  if (value !== undefined && !words.includes(value as string)) throw scheduleInvalid(field, `must be one of ${words.join(', ')}`)
}

function checkJob(job: unknown): void {
  if (!isTree(job) || typeof job.kind !== 'string') throw scheduleInvalid('job', 'must have a kind')
  const size = JSON.stringify((job.input as Json | undefined) ?? null).length
  if (size > MOST_INPUT) throw scheduleInvalid('input', `has at most ${MOST_INPUT} characters of JSON, this one has ${size}`)
}

/** The schedules of the configuration. The host has checked them with `configProblems`. */
export function configured({ entries, time_zone: zone }: SchedulesConfig): ScheduleDefinition[] {
  return Object.entries(entries).map(([name, entry]) => {
    const { spec, timing } = checkSpec(specOf(entry), zone)
    return { name, origin: 'configuration', spec, timing, principal: SYSTEM }
  })
}

/** The schedules of plugins. `rejected` gets those that are invalid. */
export function contributed(
  view: SlotView<ScheduleSpec>,
  zone: string,
  rejected: (name: string, plugin: string, error: unknown) => void
): ScheduleDefinition[] {
  return view.entries().flatMap(([name, item]): ScheduleDefinition[] => {
    const plugin = view.owner(name) ?? ''
    try {
      checkName(name)
      const { spec, timing } = checkSpec({ ...item }, zone)
      return [{ name, origin: 'plugin', spec, timing, principal: { id: `plugin:${plugin}`, scopes: [] } }]
    } catch (error) {
      if (codeOf(error) === undefined) throw error
      rejected(name, plugin, error)
      return []
    }
  })
}

/** The schedules of workflow definitions, which the engine has checked. */
export function ofWorkflows(
  view: SlotView<DefinedSchedule>,
  zone: string,
  rejected: (name: string, plugin: string, error: unknown) => void
): ScheduleDefinition[] {
  return view.entries().flatMap(([name, { spec: given, principal }]): ScheduleDefinition[] => {
    try {
      const { spec, timing } = checkSpec({ ...given }, zone)
      return [{ name, origin: 'workflow', spec, timing, principal }]
    } catch (error) {
      if (codeOf(error) === undefined) throw error
      rejected(name, view.owner(name) ?? '', error)
      return []
    }
  })
}

/** The problems of the schedules of a configuration, each with its place. */
export function configProblems({ entries, time_zone: zone }: SchedulesConfig): SvcError[] {
  const problems = [problemOf('schedules.time_zone', () => checkZone(zone))]
  for (const [name, entry] of Object.entries(entries))
    problems.push(problemOf(`schedules.entries.${name}`, () => checkSpec(specOf(entry), 'UTC')))
  return problems.filter(problem => problem !== undefined)
}

function problemOf(place: string, check: () => unknown): SvcError | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    const { code, message, details, hint } = asSvcError(error, 'SCHEDULE_INVALID')
    return svcError(code, message, { details, where: place, ...(hint === undefined ? {} : { hint }) })
  }
}
