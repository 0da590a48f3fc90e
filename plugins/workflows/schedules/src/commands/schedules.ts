import { Flags, JSON_FLAG, PORT_FLAG, SvcCommand } from '@svc/cli/command'
import type { Job, Schedule } from '@svc/core/contracts'
import { oneLine, table } from '@svc/plugin-kit'
import { CATCH_UPS, OVERLAPS } from '../settings.ts'
import { askSchedules, NAME_ARG, scheduleRecord, specOfFlags, timeText } from './shared.ts'

const HEAD = ['SCHEDULE', 'WHEN', 'KIND', 'NEXT', 'LAST', '']

/** `svc schedules list`. */
export class SchedulesList extends SvcCommand {
  static override summary = 'List the schedules and their next ticks'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --json']
  static override flags = { ...PORT_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { flags } = await this.parse(SchedulesList)
    const schedules = (await askSchedules<readonly Schedule[] | undefined>(this, flags, { do: 'list' })) ?? []
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
    'catch-up': Flags.option({ summary: 'What to do with ticks at which no server ran', options: CATCH_UPS })(),
    overlap: Flags.option({ summary: 'What to do while the earlier job is not finished', options: OVERLAPS })(),
    description: Flags.string({ summary: 'Text for lists', helpValue: '<text>' }),
    'dry-run': Flags.boolean({ summary: 'Show the next ticks, and add nothing', default: false }),
    ...PORT_FLAG,
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SchedulesAdd)
    const { 'time-zone': timeZone, 'catch-up': catchUp, cron, every, kind, input, jitter, overlap, description } = flags
    const given = { timeZone, catchUp, cron, every, kind, input, jitter, overlap, description }
    const spec = await specOfFlags(given, this.cwd)
    if (flags['dry-run']) {
      const ticks = (await askSchedules<readonly number[]>(this, flags, { do: 'preview', spec, count: 5 })).map(timeText)
      if (flags.json) return this.print(JSON.stringify({ ticks }))
      for (const tick of ticks) this.print(tick)
      return
    }
    const schedule = await askSchedules<Schedule>(this, flags, { do: 'add', name: args.name, spec })
    if (flags.json) return this.print(JSON.stringify(scheduleRecord(schedule)))
    this.note(`added ${schedule.name}; the next tick is ${timeText(schedule.next)}`)
  }
}

/** `svc schedules pause`. */
export class SchedulesPause extends SvcCommand {
  static override summary = 'Pause a schedule'
  static override examples = ['<%= config.bin %> <%= command.id %> nightly']
  static override args = NAME_ARG
  static override flags = { ...PORT_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SchedulesPause)
    const schedule = await askSchedules<Schedule>(this, flags, { do: 'pause', name: args.name })
    if (flags.json) return this.print(JSON.stringify(scheduleRecord(schedule)))
    this.note(`paused ${schedule.name}`)
  }
}

/** `svc schedules resume`. */
export class SchedulesResume extends SvcCommand {
  static override summary = 'Resume a paused schedule with its next tick'
  static override examples = ['<%= config.bin %> <%= command.id %> nightly']
  static override args = NAME_ARG
  static override flags = { ...PORT_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SchedulesResume)
    const schedule = await askSchedules<Schedule>(this, flags, { do: 'resume', name: args.name })
    if (flags.json) return this.print(JSON.stringify(scheduleRecord(schedule)))
    this.note(`resumed ${schedule.name}; the next tick is ${timeText(schedule.next)}`)
  }
}

/** `svc schedules remove`. */
export class SchedulesRemove extends SvcCommand {
  static override summary = 'Remove a schedule that was added with svc schedules add'
  static override examples = ['<%= config.bin %> <%= command.id %> nightly']
  static override args = NAME_ARG
  static override flags = { ...PORT_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SchedulesRemove)
    await askSchedules(this, flags, { do: 'remove', name: args.name })
    if (flags.json) return this.print(JSON.stringify({ name: args.name, removed: true }))
    this.note(`removed ${args.name}`)
  }
}

/** `svc schedules run`. */
export class SchedulesRun extends SvcCommand {
  static override summary = 'Start the job of a schedule now'
  static override examples = ['<%= config.bin %> <%= command.id %> nightly']
  static override args = NAME_ARG
  static override flags = { ...PORT_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SchedulesRun)
    const job = await askSchedules<Job>(this, flags, { do: 'run', name: args.name })
    if (flags.json) return this.print(JSON.stringify({ job: job.id, kind: job.kind, state: job.state }))
    this.note(`added the job ${job.id}; show it with svc jobs show`)
  }
}
