import { Flags, JSON_FLAG, MANAGED_FLAGS, SvcCommand, Args } from '@svc/cli/command'
import {
  type Job,
  type JobDetail,
  type JobKindRecord,
  type JobState,
  type CommandContext,
  Jobs,
  type ServerChoice,
} from '@svc/core/contracts'
import { DURABLE_OR_SERVER, managedServer, oneLine, sharedStore, snakeCase, table, timeText } from '@svc/plugin-kit'
import { type CallContext, systemContext } from '@svc/core'
import { type ManagedJobs, remoteJobs } from './remote-jobs.ts'

const HEAD = ['JOB', 'KIND', 'STATE', 'ATTEMPTS', 'ADDED', '']
const JOB_ARG = { id: Args.string({ description: 'Id of a job', required: true, ignoreStdin: true }) }
const STATES = ['queued', 'running', 'completed', 'failed', 'cancelled'] as const satisfies readonly JobState[]
const MOST_LISTED = 200

/** `svc jobs list`: the jobs, newest first. */
export class JobsList extends SvcCommand {
  static override summary = 'List background jobs, newest first'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --state failed --json']
  static override flags = {
    kind: Flags.string({ summary: 'Only jobs of this kind', helpValue: '<name>' }),
    state: Flags.option({ summary: 'Only jobs in this state', options: STATES })(),
    limit: Flags.integer({
      summary: `Maximum number of jobs, at most ${MOST_LISTED}`,
      helpValue: '<int>',
      default: 20,
      min: 1,
      max: MOST_LISTED,
    }),
    cursor: Flags.string({ summary: 'Continue after this page', helpValue: '<cursor>' }),
    ...MANAGED_FLAGS,
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(JobsList)
    const { kind, state, limit, cursor } = flags
    const query = { limit, ...(kind !== undefined && { kind }), ...(state && { state }), ...(cursor !== undefined && { cursor }) }
    const { jobs, ctx } = await jobsOf(this, flags)
    const page = await jobs.list(query, ctx)
    if (flags.json) return this.print(JSON.stringify({ jobs: page.jobs.map(jsonRecord), next_cursor: page.next ?? null }))
    if (page.jobs.length === 0) return this.note('no jobs found')
    for (const line of table([HEAD, ...page.jobs.map(cells)])) this.print(line)
    if (page.next !== undefined) this.note(`more jobs exist; continue with --cursor ${page.next}`)
  }
}

function cells(job: Job): string[] {
  const { id, kind, state, attempts, maxAttempts, createdAt, due, error, progress } = job
  const waits = state === 'queued' && due > Date.now() ? `due ${timeText(due)}` : ''
  const more = error ? `${error.code}: ${oneLine(error.message, 60)}` : state === 'running' ? progressText(progress) : waits
  return [id, oneLine(kind, 64), state, `${attempts}/${maxAttempts}`, timeText(createdAt), more]
}

function progressText(progress: Job['progress']): string {
  if (!progress) return ''
  const share = progress.total === undefined ? `${progress.progress}` : `${progress.progress}/${progress.total}`
  return progress.message === undefined ? share : `${share} ${oneLine(progress.message, 60)}`
}

/** `svc jobs show`: one job with its data and its log. */
export class JobsShow extends SvcCommand {
  static override summary = 'Show a job with its input, result and log'
  static override examples = ['<%= config.bin %> <%= command.id %> <id>', '<%= config.bin %> <%= command.id %> <id> --log 1000']
  static override args = JOB_ARG
  static override flags = {
    log: Flags.integer({ summary: 'Maximum number of log entries', helpValue: '<int>', default: 20, min: 1, max: 1000 }),
    ...MANAGED_FLAGS,
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(JobsShow)
    const { jobs, ctx } = await jobsOf(this, flags)
    const job = await jobs.get(args.id, ctx)
    const log = await jobs.log(args.id, flags.log, ctx)
    if (flags.json) return this.print(JSON.stringify({ job: jsonRecord(job), log: log.map(jsonRecord) }))
    for (const [name, value] of lines(job)) if (value !== '') this.print(`${`${name}:`.padEnd(12)}${value}`)
    for (const { at, level, message } of log) this.print(`${timeText(at)} ${level.padEnd(7)} ${oneLine(message, 2000)}`)
  }
}

const LONGEST_DATA = 2_000

function lines(job: JobDetail): [string, string][] {
  const { error, schedule } = job
  const data = (value: unknown) => (value === undefined ? '' : oneLine(JSON.stringify(value), LONGEST_DATA))
  return [
    ['Job', job.id],
    ['Kind', oneLine(job.kind)],
    ['State', job.isCancelling ? `${job.state} (cancelling)` : job.state],
    ['Owner', oneLine(job.owner)],
    ['Attempts', `${job.attempts} of ${job.maxAttempts}`],
    ['Added', timeText(job.createdAt)],
    ['Due', job.state === 'queued' ? timeText(job.due) : ''],
    ['Started', timeText(job.startedAt)],
    ['Ended', timeText(job.finishedAt)],
    ['Schedule', schedule === undefined ? '' : `${oneLine(schedule.name)}, ${timeText(schedule.tick)}`],
    ['Group', oneLine(job.group ?? '')],
    ['Progress', progressText(job.progress)],
    ['Error', error === undefined ? '' : `${error.code}: ${oneLine(error.message, 1000)}`],
    ['Input', data(job.input)],
    ['Checkpoint', data(job.checkpoint)],
    ['Result', data(job.result)],
  ]
}

const KINDS_HEAD = ['KIND', 'PLUGIN', 'AT ONCE', 'STARTED BY', '']

/** `svc jobs kinds`. */
export class JobsKinds extends SvcCommand {
  static override summary = 'List the kinds of background jobs'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --json']
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { flags } = await this.parse(JobsKinds)
    const { jobs, ctx } = await jobsOf(this, flags)
    const kinds = await jobs.kinds(ctx)
    if (flags.json) return this.print(JSON.stringify({ kinds: kinds.map(kindRecord) }))
    if (kinds.length === 0) return this.note('no loaded plugin adds a job kind')
    for (const line of table([KINDS_HEAD, ...kinds.map(kindCells)])) this.print(line)
  }
}

const kindCells = ({ name, plugin, concurrency, isInternal, scope, description }: JobKindRecord): string[] => [
  name,
  oneLine(plugin, 60),
  concurrency === undefined ? 'no limit' : String(concurrency),
  isInternal ? 'its plugin' : scope === undefined ? 'admin' : `admin, ${oneLine(scope, 30)}`,
  oneLine(description, 60),
]

/** A kind for `--json`. Members that are absent are null. */
const kindRecord = ({ input, ...kind }: JobKindRecord) => ({
  concurrency: null,
  scope: null,
  ...jsonRecord(kind),
  input: input ?? null,
})

/** `svc jobs cancel`. */
export class JobsCancel extends SvcCommand {
  static override summary = 'Cancel a queued or running job'
  static override examples = ['<%= config.bin %> <%= command.id %> <id>']
  static override args = JOB_ARG
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(JobsCancel)
    const { jobs, ctx } = await jobsOf(this, flags)
    const job = await jobs.cancel(args.id, ctx)
    if (flags.json) return this.print(JSON.stringify(jsonRecord(job)))
    this.note(
      job.state === 'cancelled' ? `cancelled ${job.id}` : `the job ${job.id} is ${job.state}; its worker was asked to stop it`
    )
  }
}

/** `svc jobs retry`. */
export class JobsRetry extends SvcCommand {
  static override summary = 'Queue a failed or cancelled job again'
  static override examples = ['<%= config.bin %> <%= command.id %> <id>']
  static override args = JOB_ARG
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(JobsRetry)
    const { jobs, ctx } = await jobsOf(this, flags)
    const job = await jobs.retry(args.id, ctx)
    if (flags.json) return this.print(JSON.stringify(jsonRecord(job)))
    this.note(`queued ${job.id} again`)
  }
}

/** The jobs of the chosen server, or those in the store if none runs. Throws STORE_NOT_SHARED. */
async function jobsOf(
  call: CommandContext & { readonly id?: string | undefined },
  choice: ServerChoice
): Promise<{ readonly jobs: ManagedJobs; readonly ctx: CallContext }> {
  const ctx = systemContext(call.signal, `svc ${(call.id ?? 'jobs').replaceAll(':', ' ')}`)
  const server = await managedServer(call, choice)
  if (server) return { jobs: remoteJobs(server), ctx }
  const host = await call.host()
  await sharedStore(host, 'this command cannot see the jobs of a server', ctx, DURABLE_OR_SERVER)
  return { jobs: host.service(Jobs), ctx }
}

/** A record for `--json`: keys in snake_case, times as text. Data of callers (`input`, `result`, `details`) stays as it is. */
function jsonRecord(record: object): object {
  return Object.fromEntries(
    Object.entries(record).map(([key, value]) => [
      snakeCase(key),
      TIMES.has(key) ? new Date(value as number).toISOString() : value,
    ])
  )
}

const TIMES: ReadonlySet<string> = new Set(['createdAt', 'startedAt', 'finishedAt', 'due', 'at'])
