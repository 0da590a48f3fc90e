import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Flags, JSON_FLAG, MANAGED_FLAGS, SvcCommand, Args } from '@svc/cli/command'
import {
  type Schedule,
  type CommandContext,
  type Json,
  type ScheduleSpec,
  Schedules,
  type ServerChoice,
} from '@svc/core/contracts'
import { DURABLE_OR_SERVER, managedServer, oneLine, table, lineInvalid, sharedStore, timeText } from '@svc/plugin-kit'
import { type CallContext, messageOf, systemContext } from '@svc/core'
import { CATCH_UPS, OVERLAPS, durationMs } from '../settings.ts'
import { type ManagedSchedules, remoteSchedules } from './remote-schedules.ts'

const HEAD = ['SCHEDULE', 'WHEN', 'KIND', 'NEXT', 'LAST', '']
const NAME_ARG = { name: Args.string({ description: 'Name of a schedule', required: true, ignoreStdin: true }) }

/** `svc schedules list`. */
export class SchedulesList extends SvcCommand {
  static override summary = 'List the schedules and their next ticks'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --json']
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { flags } = await this.parse(SchedulesList)
    const { all, ctx } = await schedulesOf(this, flags)
    const schedules = await all.list(ctx)
    if (flags.json) return this.print(JSON.stringify({ schedules: schedules.map(scheduleRecord) }))
    if (schedules.length === 0)
      return this.note('no schedules; add one: svc schedules add <name> --cron "0 3 * * *" --kind <kind>')
    for (const line of table([HEAD, ...schedules.map(cells)])) this.print(line)
  }
}

function cells(schedule: Schedule): string[] {
  const { name, job, next, last, isPaused, origin } = schedule
  const result = last?.error ? `${last.error.code}: ${oneLine(last.error.message, 60)}` : last?.skipped ? 'skipped: overlap' : ''
  const notes = [origin === 'added' ? '' : `by ${origin}`, result].filter(note => note !== '')
  return [
    name,
    whenText(schedule),
    oneLine(job.kind, 64),
    isPaused ? 'paused' : timeText(next),
    timeText(last?.tick),
    notes.join('; '),
  ]
}

function whenText({ cron, everyMs = 0, timeZone }: Schedule): string {
  if (cron !== undefined) return oneLine(timeZone === undefined ? cron : `${cron} ${timeZone}`, 60)
  return `every ${everyMs % 1000 === 0 ? `${everyMs / 1000}s` : `${everyMs}ms`}`
}

/** `svc schedules add`. */
export class SchedulesAdd extends SvcCommand {
  static override summary = 'Add a schedule that starts jobs of a kind'
  static override examples = [
    `<%= config.bin %> <%= command.id %> nightly --cron '0 3 * * *' --time-zone Europe/Berlin --kind notes.index`,
    `<%= config.bin %> <%= command.id %> poll --every 15m --kind feed.read --input '{"url": "https://example.com"}'`,
  ]
  static override args = NAME_ARG
  static override flags = {
    cron: Flags.string({ summary: 'Cron expression with five or six fields', helpValue: '<expression>', exclusive: ['every'] }),
    every: Flags.string({ summary: 'Interval, at least 1s', helpValue: '<duration>' }),
    'time-zone': Flags.string({ summary: 'IANA time zone of the cron expression', helpValue: '<zone>' }),
    kind: Flags.string({ summary: 'Job kind to start', helpValue: '<name>', required: true }),
    input: Flags.string({ summary: 'Input of the job as JSON, or @ and the path of a JSON file', helpValue: '<json>' }),
    jitter: Flags.string({ summary: 'Start each job up to this time after its tick', helpValue: '<duration>' }),
    'catch-up': Flags.option({ summary: 'Which missed ticks start a job when a server runs again', options: CATCH_UPS })(),
    overlap: Flags.option({ summary: 'What to do while the earlier job is not finished', options: OVERLAPS })(),
    description: Flags.string({ summary: 'Description shown in lists', helpValue: '<text>' }),
    'dry-run': Flags.boolean({ summary: 'Show the next ticks, and add nothing', default: false }),
    ...MANAGED_FLAGS,
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SchedulesAdd)
    const { 'time-zone': timeZone, 'catch-up': catchUp, cron, every, kind, input, jitter, overlap, description } = flags
    const given = { timeZone, catchUp, cron, every, kind, input, jitter, overlap, description }
    const spec = await specOfFlags(given, this.cwd)
    const { all, ctx } = await schedulesOf(this, flags)
    if (flags['dry-run']) {
      const range = { from: Date.now(), count: 5, checksJob: true }
      const ticks = (await all.preview(spec, range, ctx)).map(timeText)
      if (flags.json) return this.print(JSON.stringify({ ticks }))
      for (const tick of ticks) this.print(tick)
      return
    }
    const schedule = await all.add(args.name, spec, ctx)
    if (flags.json) return this.print(JSON.stringify(scheduleRecord(schedule)))
    this.note(`added ${schedule.name}; the next tick is ${timeText(schedule.next)}`)
  }
}

/** `svc schedules pause`. */
export class SchedulesPause extends SvcCommand {
  static override summary = 'Pause a schedule'
  static override examples = ['<%= config.bin %> <%= command.id %> nightly']
  static override args = NAME_ARG
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SchedulesPause)
    const { all, ctx } = await schedulesOf(this, flags)
    const schedule = await all.pause(args.name, ctx)
    if (flags.json) return this.print(JSON.stringify(scheduleRecord(schedule)))
    this.note(`paused ${schedule.name}`)
  }
}

/** `svc schedules resume`. */
export class SchedulesResume extends SvcCommand {
  static override summary = 'Resume a paused schedule with its next tick'
  static override examples = ['<%= config.bin %> <%= command.id %> nightly']
  static override args = NAME_ARG
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SchedulesResume)
    const { all, ctx } = await schedulesOf(this, flags)
    const schedule = await all.resume(args.name, ctx)
    if (flags.json) return this.print(JSON.stringify(scheduleRecord(schedule)))
    this.note(`resumed ${schedule.name}; the next tick is ${timeText(schedule.next)}`)
  }
}

/** `svc schedules remove`. */
export class SchedulesRemove extends SvcCommand {
  static override summary = 'Remove a schedule that was added with svc schedules add'
  static override examples = ['<%= config.bin %> <%= command.id %> nightly']
  static override args = NAME_ARG
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SchedulesRemove)
    const { all, ctx } = await schedulesOf(this, flags)
    await all.remove(args.name, ctx)
    if (flags.json) return this.print(JSON.stringify({ name: args.name, removed: true }))
    this.note(`removed ${args.name}`)
  }
}

/** `svc schedules run`. */
export class SchedulesRun extends SvcCommand {
  static override summary = 'Start the job of a schedule now'
  static override examples = ['<%= config.bin %> <%= command.id %> nightly']
  static override args = NAME_ARG
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SchedulesRun)
    const { all, ctx } = await schedulesOf(this, flags)
    const job = await all.run(args.name, ctx)
    if (flags.json) return this.print(JSON.stringify({ job: job.id, kind: job.kind, state: job.state }))
    this.note(`added the job ${job.id}; show it with svc jobs show`)
  }
}

/** The schedules of the chosen server, or those in the store if none runs. Throws STORE_NOT_SHARED. */
async function schedulesOf(
  call: CommandContext & { readonly id?: string | undefined },
  choice: ServerChoice
): Promise<{ readonly all: ManagedSchedules; readonly ctx: CallContext }> {
  const ctx = systemContext(call.signal, `svc ${(call.id ?? 'schedules').replaceAll(':', ' ')}`)
  const server = await managedServer(call, choice)
  if (server) return { all: remoteSchedules(server), ctx }
  const host = await call.host()
  await sharedStore(host, 'this command cannot see the schedules of a server', ctx, DURABLE_OR_SERVER)
  return { all: host.service(Schedules), ctx }
}

const iso = (ms: number) => new Date(ms).toISOString()

/** A schedule for `--json`. */
function scheduleRecord({ everyMs, timeZone, jitterMs, catchUp, overlap, isPaused, next, last, ...schedule }: Schedule): object {
  return {
    ...schedule,
    ...(everyMs === undefined ? {} : { every_ms: everyMs }),
    ...(timeZone === undefined ? {} : { time_zone: timeZone }),
    jitter_ms: jitterMs ?? 0,
    catch_up: catchUp ?? 'none',
    overlap: overlap ?? 'skip',
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
interface SpecFlags
  extends Pick<ScheduleSpec, 'cron' | 'description' | 'catchUp' | 'overlap'>,
    Partial<Record<'every' | 'jitter' | 'input' | 'timeZone', string>> {
  readonly kind: string
}

async function specOfFlags(flags: SpecFlags, cwd: string): Promise<ScheduleSpec> {
  const { kind, input, every, jitter, cron, timeZone, description, catchUp, overlap } = flags
  const spec = { cron, timeZone, description, catchUp, overlap }
  return {
    ...(Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)) as Partial<ScheduleSpec>),
    ...(every === undefined ? {} : { everyMs: durationOf('every', every) }),
    ...(jitter === undefined ? {} : { jitterMs: durationOf('jitter', jitter) }),
    job: { kind, ...(input === undefined ? {} : { input: await inputOf(input, cwd) }) },
  }
}
