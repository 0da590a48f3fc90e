import { readFile, stat, writeFile } from 'node:fs/promises'
import { infoRecord, problemRecord, versionRecord } from '@svc/api-types'
import { Args, Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { type CallContext, codeOf, messageOf, shownPath } from '@svc/core'
import type { WorkflowInfo, WorkflowProblem } from '@svc/core/contracts'
import { lineInvalid, oneLine, table } from '@svc/plugin-kit'
import { findServers, type FoundServer } from '@svc/runtime'
import { serverSilent } from '../errors.ts'
import { VALIDATE, type Validated, validateHere, type ValidateQuestion } from '../validate-here.ts'
import { contextOf, counted, openRuns, openWorkflows, WORKFLOW_ARG } from './arguments.ts'

export class WorkflowsValidate extends SvcCommand {
  static override summary = 'Check workflows and report all problems'
  static override description =
    'A file can be in any folder. Shows each problem with its line and a hint. Exits with 1 if there is a problem. While `svc plugins dev` runs, its server checks the workflows with the nodes and tools of that plugin, unless you name a configuration.'
  static override examples = ['<%= config.bin %> <%= command.id %> workflows/*.yaml']
  static override args = {
    workflow: Args.string({ description: 'Name or file of a workflow', required: true, multiple: true, ignoreStdin: true }),
  }
  static override flags = JSON_FLAG

  async run(): Promise<number> {
    const { args, flags } = await this.parse(WorkflowsValidate)
    using check = await openCheck(this, flags)
    const found = await Promise.all(args.workflow.map(source => lookedAt(source, check.validate)))
    const isGood = found.every(({ problems }) => problems.length === 0)
    if (flags.json) this.print(JSON.stringify({ valid: isGood, files: found.map(recordOf) }))
    else for (const line of found.flatMap(linesOf)) this.print(line)
    return isGood ? 0 : 1
  }
}

/** A checked workflow, with its file if it has one. */
interface Looked {
  readonly source: string
  readonly place: string
  readonly problems: readonly WorkflowProblem[]
}

type Validate = (question: ValidateQuestion) => Promise<Validated>

/** Checks a file in any folder, or a workflow by its name or path. Code files are found by path below workflows.code. */
async function lookedAt(source: string, validate: Validate): Promise<Looked> {
  const found = CODE.test(source) ? undefined : await stat(source).catch(() => undefined)
  const isFile = found?.isFile() === true
  const validated = await validate({ source, ...(isFile ? { text: await readFile(source, 'utf8') } : {}) })
  return { source, place: isFile ? source : placeOf(validated, source), problems: validated.problems }
}

/** Checks in the running `svc plugins dev`, which alone has the nodes of its plugin, or else in this process. */
async function openCheck(
  call: SvcCommand,
  { config }: { readonly config?: string | undefined }
): Promise<Disposable & { readonly validate: Validate }> {
  const ctx = contextOf(call, 'validate')
  using stack = new DisposableStack()
  const servers = config === undefined ? (await findServers(call.home)).map(found => stack.use(found)) : []
  const [server, ...others] = servers.filter(({ info }) => info.linked !== undefined)
  const kept = stack.move()
  const dispose = () => kept.dispose()
  const here: Validate = async question => validateHere(await openWorkflows(call), question, ctx)
  if (server === undefined || others.length > 0) return { validate: here, [Symbol.dispose]: dispose }
  call.note(`checked by svc plugins dev, ${server.info.url}`)
  const validate: Validate = question =>
    askedOf(server, question, ctx).catch((error: unknown) => {
      if (codeOf(error) !== 'PEER_SILENT') throw error
      return here(question) // its configuration leaves out this plugin
    })
  return { validate, [Symbol.dispose]: dispose }
}

async function askedOf({ control, info }: FoundServer, question: ValidateQuestion, ctx: CallContext): Promise<Validated> {
  for await (const answer of control.ask(VALIDATE, question, ctx)) return answer as Validated
  throw serverSilent(info.url)
}

const CODE = /\.m?[jt]s$/

/** The displayed location of a workflow. Without a file, it is the name that was asked for. */
const placeOf = ({ file }: Pick<WorkflowInfo, 'file'>, otherwise: string) => (file === undefined ? otherwise : shownPath(file))

const recordOf = ({ source, problems }: Looked) => ({ source, problems: problems.map(problemRecord) })

const linesOf = ({ source, place, problems }: Looked) =>
  problems.length === 0 ? [`${source}: no problems`] : problemLines(place, problems)

/** Formats problems as `file:line path message`, with the hint on the next line. */
const problemLines = (source: string, problems: readonly WorkflowProblem[]): string[] =>
  problems.flatMap(({ message, path, line, hint }) => [
    `${source}${line === undefined ? '' : `:${line}`} ${path === '' ? '' : `${path} `}${oneLine(message, 400)}`,
    ...(hint === undefined ? [] : [`  ${oneLine(hint, 400)}`]),
  ])

const LIST_HEAD = ['NAME', 'NODES', 'FROM', 'DESCRIPTION']

export class WorkflowsList extends SvcCommand {
  static override summary = 'List workflows'
  static override description = 'Lists workflows of plugins, and files below workflows.roots and <svc home>/workflows.'
  static override examples = ['<%= config.bin %> <%= command.id %>']
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { flags } = await this.parse(WorkflowsList)
    const all = await (await openWorkflows(this)).list(contextOf(this, 'list'))
    if (flags.json) return this.print(JSON.stringify({ workflows: all.map(infoRecord) }))
    if (all.length === 0) return this.note('no workflows found; add a workflow file to a folder of workflows.roots')
    const rows = all.map(({ name, nodes, source, description = '', problems = [] }) => {
      const wrong = `${counted(problems.length, 'problem')}, run svc workflows validate ${name}`
      return [name, problems.length > 0 ? '-' : String(nodes), source, problems.length > 0 ? wrong : oneLine(description)]
    })
    for (const line of table([LIST_HEAD, ...rows])) this.print(line)
  }
}

export class WorkflowsShow extends SvcCommand {
  static override summary = 'Show the definition of a workflow'
  static override examples = ['<%= config.bin %> <%= command.id %> release']
  static override args = WORKFLOW_ARG
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WorkflowsShow)
    const { info, definition } = await (await openWorkflows(this)).show(args.workflow, contextOf(this, 'show'))
    if (flags.json) return this.print(JSON.stringify({ workflow: infoRecord(info), definition }))
    const { stringify } = await import('yaml')
    this.note(`from ${info.source}`)
    this.print(stringify(definition, { lineWidth: 120 }).trimEnd())
    for (const line of problemLines(placeOf(info, info.source), info.problems ?? [])) this.note(line)
  }
}

export class WorkflowsGraph extends SvcCommand {
  static override summary = 'Draw a workflow'
  static override description =
    'Draws a definition even if it has problems, and prints their number to the standard error. Run `svc workflows validate` to see them.'
  static override examples = ['<%= config.bin %> <%= command.id %> release --svg release.svg']
  static override args = WORKFLOW_ARG
  static override flags = {
    svg: Flags.string({ summary: 'Write SVG to a file, or to the standard output for -', helpValue: '<file>' }),
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WorkflowsGraph)
    const { definition, info } = await (await openWorkflows(this)).show(args.workflow, contextOf(this, 'graph'))
    const problems = info.problems?.length ?? 0
    if (problems > 0) this.note(`the definition has ${counted(problems, 'problem')}: run svc workflows validate ${args.workflow}`)
    const { drawSvg, drawTerminal } = await import('@svc/workflow-lang')
    if (flags.svg === undefined || flags.svg === '-')
      return this.print(flags.svg ? drawSvg(definition) : drawTerminal(definition))
    await writeFile(flags.svg, drawSvg(definition)).catch((error: unknown) => {
      throw lineInvalid(`cannot write --svg: ${messageOf(error)}`, 'workflows graph <workflow> [--svg <file>]')
    })
    this.note(`drawn to ${flags.svg}`)
  }
}

const VERSIONS_HEAD = ['DEFINITION', 'VERSION', 'OPEN RUNS', 'LAST USED', '']

export class WorkflowsVersions extends SvcCommand {
  static override summary = 'List the versions of a workflow with their open runs'
  static override description = 'A run keeps the version that it began with. New runs use the current one.'
  static override examples = ['<%= config.bin %> <%= command.id %> release']
  static override args = WORKFLOW_ARG
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WorkflowsVersions)
    const ctx = contextOf(this, 'versions')
    const versions = await (await openRuns(this, ctx)).versions(args.workflow, ctx)
    if (flags.json) return this.print(JSON.stringify({ versions: versions.map(versionRecord) }))
    const rows = versions.map(({ definition, version = '', isCurrent, open, lastUsed, missing }) => {
      const notes = [isCurrent ? 'current' : '', missing.length > 0 ? `no plugin adds: ${missing.join(', ')}` : '']
      const used = lastUsed === undefined ? '' : new Date(lastUsed).toISOString()
      return [definition.slice(0, 12), oneLine(version, 40), String(open), used, notes.filter(note => note !== '').join('; ')]
    })
    for (const line of table([VERSIONS_HEAD, ...rows])) this.print(line)
  }
}
