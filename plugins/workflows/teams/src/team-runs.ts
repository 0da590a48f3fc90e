import { createHash } from 'node:crypto'
import { type CallContext, codeOf, type Log } from '@svc/core'
import type {
  Json,
  NodeTask,
  PublicError,
  Run,
  RunStep,
  RunUsage,
  Space,
  Store,
  TeamBudget,
  TeamMemberStatus,
  TeamMessage,
  TeamRun,
  TeamRunInfo,
  TeamRunQuery,
  TeamRunStatus,
  Workflows,
} from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { cursorInvalid, teamRunUnknown } from './errors.ts'
import { taskText } from './formations.ts'
import { limitOf, usageOf } from './team-budget.ts'
import type { TeamProgress, TeamRecorder } from './team-node.ts'
import type { Team } from './team.ts'

const RUNS = 'team_runs'
const SPACE: Space = {
  name: 'teams',
  version: 1,
  collections: { [RUNS]: { indexes: { by_owner: ['owner', 'startedAt'], by_time: ['startedAt'] } } },
}

interface RecordedMember {
  readonly name: string
  readonly role: string
  readonly lead: boolean
}

/** A stored run of a team. The messages are the steps of its workflow run. */
interface RunRecord extends Omit<TeamRunInfo, 'status'> {
  readonly status: 'running' | NonNullable<TeamProgress['ended']>
  readonly members: readonly RecordedMember[]
}

export interface TeamRunsOptions {
  readonly store: Store
  readonly workflows: Workflows
  /** Number of runs that are kept for each principal, and for how long. */
  readonly keep: number
  readonly keepMs: number
  readonly log: Log
}

export interface TeamRuns extends TeamRecorder {
  /** Records a run that has just started, before its first step has: from now on it can be read. */
  begin(run: Run, team: Team, task: Json, ctx: CallContext): Promise<void>
  list(query: TeamRunQuery, ctx: CallContext): Promise<{ readonly runs: readonly TeamRunInfo[]; readonly next?: string }>
  tree(id: string, ctx: CallContext): Promise<TeamRun>
}

/** Characters of the task in lists, and of a text in a tree. */
const [SHORT, LONG] = [500, 65_536]
const [PAGE, MOST_PAGES] = [200, 20]

export async function openTeamRuns(options: TeamRunsOptions, lasting: CallContext): Promise<TeamRuns> {
  await openSpace(options.store, SPACE, {}, lasting)
  return new StoredTeamRuns(options)
}

class StoredTeamRuns implements TeamRuns {
  readonly #options: TeamRunsOptions

  constructor(options: TeamRunsOptions) {
    this.#options = options
  }

  /** The run of the team goes on when it cannot be recorded. */
  async record(task: NodeTask, team: Team, progress: TeamProgress, ctx: CallContext): Promise<void> {
    const { store, keep, log } = this.#options
    if (keep === 0) return
    try {
      const value = await this.#recordOf(task, team, progress, ctx)
      await store.batch([{ op: 'put', collection: RUNS, key: value.id, value: value as unknown as Json }], {}, ctx)
      if (progress.round === 1 && !progress.ended) await this.#prune(value.owner, ctx)
    } catch (err) {
      if (!ctx.signal.aborted) log.warn({ err, run: task.run.id, request_id: task.run.id }, 'failed to record a run of a team')
    }
  }

  /** A worker that was faster, or the first start with the same idempotency key, has recorded more. */
  async begin(run: Run, team: Team, task: Json, ctx: CallContext): Promise<void> {
    const { store, keep } = this.#options
    if (keep === 0) return
    const progress = { since: run.createdAt, round: 0, spent: usageOf([]) }
    const value = recordOf({ run, step: OWN_STEP, settings: { task } }, team, progress, ctx) as unknown as Json
    try {
      await store.batch([{ op: 'put', collection: RUNS, key: run.id, value, ifVersion: 0 }], {}, ctx)
    } catch (error) {
      if (codeOf(error) !== 'STORE_CONFLICT') throw error
    }
  }

  /** A later call of the node does not know when the team began. */
  async #recordOf(task: NodeTask, team: Team, progress: TeamProgress, ctx: CallContext): Promise<RunRecord> {
    const record = recordOf(task, team, progress, ctx)
    if (task.state === undefined) return record
    const before = await this.#options.store.get(RUNS, record.id, ctx)
    return before ? { ...record, startedAt: (before.value as unknown as RunRecord).startedAt } : record
  }

  /** Deletes what is older than allowed, and the oldest runs of a principal that has too many. */
  async #prune(owner: string, ctx: CallContext): Promise<void> {
    const { store, keep, keepMs } = this.#options
    const old = await store.range(RUNS, { index: 'by_time', to: Date.now() - keepMs, limit: PAGE }, ctx)
    const surplus: string[] = []
    let [seen, cursor]: [number, string | undefined] = [0, undefined]
    for (let pages = 0; pages <= Math.ceil(keep / PAGE) + 1; pages++) {
      const from: { cursor?: string } = cursor === undefined ? {} : { cursor }
      const page = await store.range(RUNS, { index: 'by_owner', equals: [owner], reverse: true, limit: PAGE, ...from }, ctx)
      for (const { key } of page.records) if (++seen > keep) surplus.push(key)
      cursor = page.next
      if (cursor === undefined) break
    }
    const keys = new Set([...old.records.map(({ key }) => key), ...surplus])
    if (keys.size > 0)
      await store.batch(
        [...keys].map(key => ({ op: 'delete', collection: RUNS, key }) as const),
        {},
        ctx
      )
  }

  async list({ limit, cursor, ...filter }: TeamRunQuery, ctx: CallContext) {
    const own = seesAll(ctx) ? { index: 'by_time' } : { index: 'by_owner', equals: [ctx.principal.id] }
    const runs: TeamRunInfo[] = []
    let next = cursor
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const from = next === undefined ? {} : { cursor: next }
      const page = await this.#page({ ...own, from: this.#oldest(), reverse: true, limit: limit - runs.length, ...from }, ctx)
      const found = await Promise.all(page.records.map(({ value }) => this.#infoOf(value as unknown as RunRecord, ctx)))
      runs.push(...found.filter(info => isMet(info, filter)))
      next = page.next
      if (next === undefined || runs.length >= limit) break
    }
    return { runs, ...(next === undefined ? {} : { next }) }
  }

  #oldest(): number {
    return Math.max(0, Date.now() - this.#options.keepMs)
  }

  async #page(query: Parameters<Store['range']>[1], ctx: CallContext) {
    try {
      return await this.#options.store.range(RUNS, query, ctx)
    } catch (error) {
      throw codeOf(error) === 'STORE_INVALID' && query.cursor !== undefined ? cursorInvalid() : error
    }
  }

  /** A run that ended without its team was cancelled, or failed outside of it: the record does not know that. */
  async #infoOf(record: RunRecord, ctx: CallContext): Promise<TeamRunInfo> {
    return record.status === 'running' ? infoOf(record, await this.#runOf(record.run, ctx)) : infoOf(record, undefined)
  }

  async #runOf(run: string, ctx: CallContext): Promise<Run | 'deleted'> {
    try {
      return await this.#options.workflows.get(run, ctx)
    } catch (error) {
      if (codeOf(error) === 'RUN_UNKNOWN') return 'deleted'
      throw error
    }
  }

  async tree(id: string, ctx: CallContext): Promise<TeamRun> {
    const found = ID.test(id) ? await this.#options.store.get(RUNS, id, ctx) : undefined
    const record = found?.value as unknown as RunRecord | undefined
    if (!record || record.startedAt < this.#oldest() || !(record.owner === ctx.principal.id || seesAll(ctx)))
      throw teamRunUnknown(id)
    const run = await this.#runOf(record.run, ctx)
    const info = infoOf(record, run)
    if (run === 'deleted') return { ...info, members: membersOf(record, info, []) }
    const steps = await this.#options.workflows.steps(record.run, ctx)
    return treeOf(record, info, steps)
  }
}

const ID = /^[A-Za-z0-9_.-]{1,100}$/
const seesAll = ({ principal }: CallContext) => principal.scopes.includes('*') || principal.scopes.includes('admin')

const isMet = (info: TeamRunInfo, { team, status }: Pick<TeamRunQuery, 'team' | 'status'>) =>
  (team === undefined || info.team === team) && (status === undefined || info.status === status)

/** The outermost step of the own workflow of a team. */
const OWN_STEP = 'team'

const idOf = (run: string, step: string) =>
  step === OWN_STEP ? run : `${run}.${createHash('sha256').update(step).digest('hex').slice(0, 12)}`

interface TeamStep extends Pick<NodeTask, 'step' | 'settings'> {
  readonly run: Pick<Run, 'id' | 'workflow'>
}

function recordOf({ run, step, settings }: TeamStep, team: Team, progress: TeamProgress, ctx: CallContext): RunRecord {
  const { since, round, spent, ended, stop, error } = progress
  return {
    id: idOf(run.id, step),
    run: run.id,
    step,
    workflow: run.workflow,
    team: team.name,
    formation: team.formation,
    owner: ctx.principal.id,
    status: ended ?? 'running',
    task: taskText(settings.task).slice(0, SHORT),
    ...(Object.keys(team.budget).length > 0 ? { budget: team.budget } : {}),
    rounds: round,
    spent,
    ...(stop ? { stop } : {}),
    ...(error ? { error } : {}),
    startedAt: since,
    ...(ended ? { finishedAt: Date.now() } : {}),
    members: team.members.map(({ name, role }) => ({ name, role, lead: name === team.lead?.name })),
  }
}

function infoOf({ members: _members, ...record }: RunRecord, run: Run | 'deleted' | undefined): TeamRunInfo {
  if (record.status !== 'running' || run === undefined) return record
  if (run === 'deleted') return { ...record, status: 'failed' }
  const { status, error, finishedAt } = run
  if (status === 'running') return record
  return {
    ...record,
    status: error?.code === 'CANCELLED' ? 'cancelled' : 'failed',
    ...(error ? { error } : {}),
    ...(finishedAt === undefined ? {} : { finishedAt }),
  }
}

/** `team/2-3-ann/ann`: the second round, the third message, of the member `ann`. */
const KEY = /^(\d+)-(\d+)-([a-z][a-z0-9_]*)$/

function treeOf(record: RunRecord, info: TeamRunInfo, steps: readonly RunStep[]): TeamRun {
  const found = steps.flatMap(step => {
    if (!step.step.startsWith(`${record.step}/`)) return []
    const [key = '', node, ...more] = step.step.slice(record.step.length + 1).split('/')
    const parts = KEY.exec(key)
    if (!parts || node === undefined || more.length > 0) return []
    return [{ round: Number(parts[1]), at: Number(parts[2]), message: messageOf(parts[3]!, step, record) }]
  })
  const ordered = found.toSorted((a, b) => a.at - b.at)
  const numbers = [...new Set(ordered.map(({ round }) => round))]
  const tree = numbers.map(round => ({
    round,
    messages: ordered.filter(item => item.round === round).map(({ message }) => message),
  }))
  const messages = ordered.map(({ message }) => message)
  const spent = messages.length === 0 ? info.spent : total(messages)
  return { ...info, spent, rounds: Math.max(info.rounds, ...numbers), members: membersOf(record, info, messages), tree }
}

const total = (messages: readonly TeamMessage[]): RunUsage =>
  usageOf(messages.map(({ spent: { toolCalls, ...spent } }) => ({ ...spent, tool_calls: toolCalls })))

/** What the node `agent` is asked and returns. */
interface Asked {
  readonly prompt?: string
}
interface Answered {
  readonly text?: string
  readonly data?: Json
  readonly provider?: string
  readonly model?: string
  readonly tools_used?: readonly {
    readonly tool: string
    readonly success: boolean
    readonly error?: string
  }[]
}

function messageOf(member: string, step: RunStep, record: RunRecord): TeamMessage {
  const { prompt = '' } = Object(step.input) as Asked
  const { text, data, provider, model, tools_used: tools = [] } = Object(step.output) as Answered
  const isLong = [prompt, text ?? '', JSON.stringify(data ?? null)].some(value => value.length > LONG)
  return {
    member,
    step: step.step,
    status: statusOf(step, record),
    prompt: prompt.slice(0, LONG),
    ...(text === undefined ? {} : { reply: text.slice(0, LONG) }),
    ...(data === undefined || JSON.stringify(data).length > LONG ? {} : { data }),
    ...(isLong ? { shortened: true as const } : {}),
    ...(provider === undefined ? {} : { model: `${provider}/${model}` }),
    attempts: step.attempts,
    tools,
    spent: step.spent ?? { tokens: 0, toolCalls: 0 },
    ...(step.error ? { error: step.error } : {}),
    startedAt: step.startedAt,
    ...(step.finishedAt === undefined ? {} : { finishedAt: step.finishedAt }),
  }
}

function statusOf({ status, error, finishedAt }: RunStep, { budget = {}, startedAt }: RunRecord): TeamMessage['status'] {
  if (status === 'waiting') return 'running'
  return status === 'failed' && error && stoppedBy(error, finishedAt, budget, startedAt) ? 'stopped' : status
}

const stoppedBy = (error: PublicError, finishedAt: number | undefined, budget: TeamBudget, since: number) =>
  limitOf(error, budget, { since, now: finishedAt ?? since })

function membersOf(
  { members, budget = {}, startedAt }: RunRecord,
  { stop, status }: TeamRunInfo,
  messages: readonly TeamMessage[]
): TeamRun['members'] {
  return members.map(member => {
    const own = messages.filter(message => message.member === member.name)
    const last = own.at(-1)
    const error = own.findLast(message => message.error)?.error
    const limit =
      last?.status === 'stopped'
        ? stoppedBy(last.error!, last.finishedAt, budget, startedAt)
        : last === undefined && isOver(status)
          ? stop?.budget
          : undefined
    return {
      ...member,
      status: (last?.status ?? 'idle') satisfies TeamMemberStatus,
      messages: own.length,
      spent: total(own),
      ...(limit === undefined ? {} : { stoppedBy: limit }),
      ...(error ? { error } : {}),
    }
  })
}

const isOver = (status: TeamRunStatus) => status !== 'running'
