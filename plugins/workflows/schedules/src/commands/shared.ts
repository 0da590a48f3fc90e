import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Args } from '@svc/cli/command'
import { messageOf, systemContext } from '@svc/core'
import { type CommandContext, type Json, type Schedule, type ScheduleSpec, Store } from '@svc/core/contracts'
import { lineInvalid, storeForgets } from '@svc/plugin-kit'
import { askServer } from '@svc/runtime'
import { type SchedulesQuestion, TOPIC } from '../answers.ts'
import { durationMs } from '../settings.ts'

const HINT = 'Configure a durable store, such as @svc/plugin-store-sqlite, or start the server first'

/** The answer of the running server, or of the plugins in this process if none runs. Throws STORE_FORGETS. */
export async function askSchedules<T>(
  call: CommandContext,
  { port }: { readonly port?: number | undefined },
  question: SchedulesQuestion
): Promise<T> {
  const ctx = systemContext(call.signal, `svc schedules ${question.do}`)
  const message = question as unknown as Json
  const answers = askServer(call, { topic: TOPIC, message, port }, ctx, async host => {
    const { durable, kind } = await host.service(Store).probe(ctx)
    if (!durable) throw storeForgets(kind, 'this command cannot see the schedules of a server', HINT)
  })
  return (await Array.fromAsync(answers))[0] as T
}

export const NAME_ARG = { name: Args.string({ description: 'Name of a schedule', required: true, ignoreStdin: true }) }

/** `2026-11-24 02:31:07Z`. */
export const timeText = (ms: number | undefined): string =>
  ms === undefined
    ? ''
    : new Date(ms)
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, 'Z')

const iso = (ms: number) => new Date(ms).toISOString()

/** A schedule for `--json`. */
export function scheduleRecord({ everyMs, timeZone, jitterMs, catchUp, isPaused, next, last, ...schedule }: Schedule): object {
  return {
    ...schedule,
    ...(everyMs === undefined ? {} : { every_ms: everyMs }),
    ...(timeZone === undefined ? {} : { time_zone: timeZone }),
    ...(jitterMs === undefined ? {} : { jitter_ms: jitterMs }),
    ...(catchUp === undefined ? {} : { catch_up: catchUp }),
    is_paused: isPaused,
    next: next === undefined ? null : iso(next),
    last: last === undefined ? null : { ...last, tick: iso(last.tick), at: iso(last.at) },
  }
}

/** The duration of a flag in milliseconds. */
function durationOf(flag: string, text: string): number {
  const ms = durationMs(text)
  if (ms === undefined)
    throw lineInvalid(`--${flag} must be a duration such as 30s, 15m, 2h, 1d, was ${text}`, `schedules add --${flag} 15m …`)
  return ms
}

/** The value of --input: JSON, or @ and the path of a JSON file. */
async function inputOf(text: string, cwd: string): Promise<Json> {
  try {
    const json = text.startsWith('@') ? await readFile(resolve(cwd, text.slice(1)), 'utf8') : text
    return JSON.parse(json) as Json
  } catch (error) {
    throw lineInvalid(`--input is not valid JSON: ${messageOf(error)}`, `schedules add … --input '{"a": 1}'`)
  }
}

/** The flags of `svc schedules add` that describe a schedule. */
export interface SpecFlags
  extends Pick<ScheduleSpec, 'cron' | 'description' | 'catchUp' | 'overlap'>,
    Partial<Record<'every' | 'jitter' | 'input' | 'timeZone', string>> {
  readonly kind: string
}

export async function specOfFlags(flags: SpecFlags, cwd: string): Promise<ScheduleSpec> {
  const { kind, input, every, jitter, cron, timeZone, description, catchUp, overlap } = flags
  const spec = { cron, timeZone, description, catchUp, overlap }
  return {
    ...(Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)) as Partial<ScheduleSpec>),
    ...(every === undefined ? {} : { everyMs: durationOf('every', every) }),
    ...(jitter === undefined ? {} : { jitterMs: durationOf('jitter', jitter) }),
    job: { kind, ...(input === undefined ? {} : { input: await inputOf(input, cwd) }) },
  }
}
