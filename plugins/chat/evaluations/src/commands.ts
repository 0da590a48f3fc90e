import { access, constants, open, writeFile } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import { Args, Flags, INTERRUPTED, JSON_FLAG, SERVER_FLAGS, SvcCommand, usageError } from '@svc/cli/command'
import { codeOf, messageOf, svcError, type SvcError, systemContext } from '@svc/core'
import {
  type CommandContext,
  type Evaluation,
  type EvaluationReport,
  type EvaluationRequest,
  type EvaluationResult,
  Evaluations,
  type ServerChoice,
  type ServerClient,
} from '@svc/core/contracts'
import { oneLine } from '@svc/plugin-kit'
import { type EvaluationProblem, LIMITS, readCases } from './cases.ts'
import { problemText } from './errors.ts'
import { junitOf, reportLines } from './output.ts'
import { type Outline, reportOf } from './report.ts'

const PATH = '/api/v1/evaluations'

const REPORT_FLAGS = {
  junit: Flags.string({ summary: 'Also write the report as JUnit XML to a file', helpValue: '<file>' }),
  concurrency: Flags.integer({
    summary: 'Maximum turns at the same time',
    helpValue: '<int>',
    min: 1,
    max: LIMITS.concurrency,
  }),
  ...SERVER_FLAGS,
  ...JSON_FLAG,
}
const EXITS =
  'Exits with 0 if all turns pass, with 1 if some fail, with 2 for a wrong command line or file, and with 130 after an interrupt. ' +
  'Ctrl-C stops the evaluation and reports what is done so far.'

/** `svc eval run`. */
export class EvalRun extends SvcCommand {
  static override summary = 'Run the cases of a file and check the replies'
  static override description =
    'Runs on the running server of this svc home, or on the server of --url or --port. If no server runs, the command starts a host in its own process. ' +
    'A case with a record runs no tool. Other cases call tools as a chat does; calls that need approval are denied. ' +
    EXITS
  static override examples = [
    '<%= config.bin %> <%= command.id %> cases.yaml',
    '<%= config.bin %> <%= command.id %> cases.yaml --profile fast --against careful --repeat 5',
    '<%= config.bin %> <%= command.id %> cases.yaml --junit report.xml',
  ]
  static override args = { file: Args.string({ description: 'File of cases, YAML or JSON', required: true, ignoreStdin: true }) }
  static override flags = {
    profile: Flags.string({ summary: 'Profile that answers, in place of that of a case', helpValue: '<name>' }),
    against: Flags.string({ summary: 'Second profile to compare with', helpValue: '<name>' }),
    repeat: Flags.integer({
      summary: 'How often each case runs that sets no number itself',
      helpValue: '<int>',
      min: 1,
      max: LIMITS.repeat,
    }),
    ...REPORT_FLAGS,
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(EvalRun)
    const { profile, against, repeat, concurrency } = flags
    const cases = await casesIn(placeOf(this, args.file), args.file)
    const request: EvaluationRequest = {
      ...cases,
      targets: [profile === undefined ? {} : { profile }, ...(against === undefined ? [] : [{ profile: against }])],
      ...(repeat === undefined ? {} : { repeat }),
      ...(concurrency === undefined ? {} : { concurrency }),
    }
    return evaluate(this, request, flags)
  }
}

/** `svc eval replay`. */
export class EvalReplay extends SvcCommand {
  static override summary = 'Run stored turns again and compare the replies'
  static override description =
    'Runs turns of your conversations again, each with the turns before it. Tool calls get their recorded results: no tool runs, and a call that is not in the record fails. ' +
    'By default, a reply passes if it is the stored text; with --similarity or --judge, if it means the same. ' +
    EXITS
  static override examples = [
    '<%= config.bin %> <%= command.id %> --since 2h --profile careful',
    '<%= config.bin %> <%= command.id %> --since 2026-11-01T00:00:00Z --limit 50 --similarity 0.85',
    '<%= config.bin %> <%= command.id %> --since 7d --conversation <id> --judge',
  ]
  static override flags = {
    since: Flags.string({
      summary: 'Only turns since this time, or of the last minutes, hours or days, such as 30m, 2h or 7d',
      helpValue: '<time>|<n>m|<n>h|<n>d',
      required: true,
    }),
    conversation: Flags.string({ summary: 'Only turns of this conversation', helpValue: '<id>' }),
    limit: Flags.integer({
      summary: 'Maximum number of turns, the newest (default: 20)',
      helpValue: '<int>',
      min: 1,
      max: LIMITS.turns,
    }),
    profile: Flags.string({ summary: 'Profile that answers', helpValue: '<name>' }),
    similarity: Flags.custom<number>({
      summary: 'Compare embeddings: minimum similarity from 0 to 1',
      helpValue: '<number>',
      parse: async word => shareOf(word),
    })(),
    judge: Flags.boolean({ summary: 'Let a model grade whether the reply means the same', default: false }),
    'judge-profile': Flags.string({ summary: 'Profile of the judge', helpValue: '<name>', dependsOn: ['judge'] }),
    ...REPORT_FLAGS,
  }

  async run(): Promise<number> {
    const { flags } = await this.parse(EvalReplay)
    const { conversation, limit, profile, similarity, judge, concurrency } = flags
    const judgeProfile = flags['judge-profile']
    const request: EvaluationRequest = {
      replay: {
        since: timeOf(flags.since),
        ...(conversation === undefined ? {} : { conversation_id: conversation }),
        ...(limit === undefined ? {} : { limit }),
        ...(similarity === undefined ? {} : { similarity }),
        ...(judge ? { judge } : {}),
      },
      targets: [profile === undefined ? {} : { profile }],
      ...(judgeProfile === undefined ? {} : { judge: { profile: judgeProfile } }),
      ...(concurrency === undefined ? {} : { concurrency }),
    }
    return evaluate(this, request, flags)
  }
}

function shareOf(word: string): number {
  const value = Number(word)
  if (word.trim() === '' || !(value >= 0 && value <= 1))
    throw svcError('COMMAND_LINE_INVALID', `Expected a number from 0 to 1 but received: ${word}`)
  return value
}

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

function timeOf(given: string): string {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(given) ?? []
  const time = count === undefined ? Date.parse(given) : Date.now() - Number(count) * UNITS[unit]!
  if (Number.isNaN(time) || time < 0)
    throw usageError('COMMAND_LINE_INVALID', `--since is not a time: ${oneLine(given)}`, {
      hint: 'Write a time such as 2026-01-31T12:00:00Z, or 30m, 2h or 7d',
    })
  return new Date(time).toISOString()
}

const placeOf = ({ cwd }: CommandContext, file: string) => (isAbsolute(file) ? file : join(cwd, file))

/** Reads a file of cases. Ends the command with 2 and all problems if it has some. */
async function casesIn(place: string, file: string): Promise<EvaluationRequest> {
  const { request, problems } = await readCases(await textOf(place, file))
  if (problems.length === 0) return request
  throw usageError('EVALUATION_INVALID', [`${file} has problems:`, ...problems.map(lineOf)].join('\n  '), {
    details: { file, problems: problems.map(problem => ({ ...problem })) },
    hint: 'See docs/guides/evaluate-a-profile.md',
  })
}

const lineOf = (problem: EvaluationProblem) =>
  `${oneLine(problemText(problem), 400)}${problem.hint === undefined ? '' : `. ${oneLine(problem.hint, 200)}`}`

async function textOf(place: string, file: string): Promise<string> {
  try {
    await using found = await open(place)
    const { size } = await found.stat()
    // a device or a pipe has the size 0 and no end
    const { buffer, bytesRead } = await found.read(Buffer.alloc(LIMITS.bytes + 1), 0, LIMITS.bytes + 1)
    if (size > LIMITS.bytes || bytesRead > LIMITS.bytes)
      throw usageError('EVALUATION_INVALID', `${file} is longer than ${LIMITS.bytes} bytes`, { hint: 'Split the cases' })
    return buffer.toString('utf8', 0, bytesRead)
  } catch (error) {
    if (codeOf(error) === 'EVALUATION_INVALID') throw error
    throw usageError('FILE_UNREADABLE', `${file} cannot be read: ${messageOf(error)}`, { hint: 'Check the path' })
  }
}

interface ReportOptions extends ServerChoice {
  readonly junit?: string | undefined
  readonly json: boolean
}

/** Runs an evaluation on a server or in this process, and reports it. Resolves with the exit code. */
async function evaluate(command: CommandContext, request: EvaluationRequest, options: ReportOptions): Promise<number> {
  if (options.junit !== undefined) await checkFolder(placeOf(command, options.junit), options.junit)
  const server = await command.server(options)
  const report = await (server ? onServer(server, request, command) : here(request, command)).catch((error: unknown) => {
    throw codeOf(error) === 'INVALID_VALUE' ? asUsage(error as SvcError) : error
  })
  if (options.json) command.print(JSON.stringify(report))
  else for (const line of reportLines(report)) command.print(line)
  if (options.junit !== undefined) await writeJunit(placeOf(command, options.junit), options.junit, report)
  if (report.total === 0) command.note('no turn to run was found')
  if (command.signal.aborted) return INTERRUPTED
  return report.complete && report.targets.every(({ passed, samples }) => passed === samples) ? 0 : 1
}

/** What svc does not accept was in the command line or in the file. */
const asUsage = ({ message, details, hint }: SvcError) =>
  usageError('INVALID_VALUE', message, { details, ...(hint === undefined ? {} : { hint }) })

/** Before the turns, which cost money. */
const checkFolder = (place: string, file: string) =>
  access(dirname(place), constants.W_OK).catch((error: unknown) => {
    throw fileUnwritable(file, error)
  })

const writeJunit = (place: string, file: string, report: EvaluationReport) =>
  writeFile(place, junitOf(report)).catch((error: unknown) => {
    throw fileUnwritable(file, error)
  })

const fileUnwritable = (file: string, error: unknown) =>
  usageError('FILE_UNWRITABLE', `${file} cannot be written: ${messageOf(error)}`, { hint: 'Check the path' })

/** Runs in this process. After Ctrl-C: the report of what is done. */
async function here(request: EvaluationRequest, command: CommandContext): Promise<EvaluationReport> {
  const host = await command.host()
  const ctx = systemContext(command.signal, crypto.randomUUID())
  const results: EvaluationResult[] = []
  let outline: Outline | undefined
  try {
    for await (const event of host.service(Evaluations).run(request, ctx)) {
      if (event.type === 'start') {
        outline = event
        command.note(`runs ${event.total} turns in this process`)
      }
      if (event.type === 'result') results.push(event.result)
    }
  } catch (error) {
    if (!command.signal.aborted || outline === undefined) throw error
  }
  return reportOf(outline!, results)
}

const POLL_MS = 1_000
/** After Ctrl-C: time for the server to stop. */
const STOP_MS = 15_000

/** Runs on a server. After Ctrl-C: stops it there, and returns the report of what is done. */
async function onServer(server: ServerClient, body: EvaluationRequest, command: CommandContext): Promise<EvaluationReport> {
  let found = await server.request<Evaluation>('POST', PATH, { body })
  const path = `${PATH}/${encodeURIComponent(found.id)}`
  command.note(`evaluation ${found.id} runs on ${server.url}`)
  try {
    while (found.state === 'queued' || found.state === 'running')
      found = await server.request<Evaluation>('GET', `${path}?wait_ms=${POLL_MS}`)
  } catch (error) {
    if (!command.signal.aborted) throw error
    found = await server.request<Evaluation>('POST', `${path}/cancel`, { signal: AbortSignal.timeout(STOP_MS) })
  }
  if (found.state === 'failed') throw evaluationFailed(found)
  return found.report ?? reportOf({ cases: [], targets: [], total: found.total }, [])
}

const evaluationFailed = ({ id, error }: Evaluation) =>
  svcError(error?.code ?? 'EVALUATION_FAILED', error?.message ?? 'the evaluation failed', {
    details: { ...error?.details, id },
    hint: `Run \`svc jobs show ${id}\``,
  })

export const COMMANDS = { 'eval:run': EvalRun, 'eval:replay': EvalReplay }
