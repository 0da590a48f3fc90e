import { type CallContext, codeOf, type SlotView } from '@svc/core'
import type { Run, TeamDefinition, Tool, Workflows } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { delegatedAlready, runFailed } from './errors.ts'
import type { TeamResult } from './team-node.ts'
import type { Delegation } from './teams.ts'

export interface DelegateOptions {
  readonly delegate: Delegation
  readonly workflows: Workflows
  readonly waitMs: number
}

/** Additional time to return the answer or to cancel the run. */
const MARGIN_MS = 5_000
/** Maximum number of teams in the tool description. */
const SHOWN = 30

/** The tool `delegate`, with which a model gives work to a team. Its description lists the teams. */
export function createDelegate({ delegate, workflows, waitMs }: DelegateOptions, known: readonly TeamDefinition[]): Tool {
  return toolOf<{ readonly team: string; readonly task: string }>({
    description: `Gives a task to a team of models, and returns its result. ${teamList(known)}`,
    category: 'teams',
    // the effects that its members can have
    effects: ['read', 'write', 'execute', 'network'],
    modes: ['delegate'],
    timeoutMs: waitMs + MARGIN_MS,
    parameters: objectOf({
      team: { type: 'string', minLength: 1, maxLength: 100, description: 'name of a team' },
      task: {
        type: 'string',
        minLength: 1,
        maxLength: 100_000,
        description: 'everything that the team must know: it sees nothing else',
      },
    }),
    async call({ team, task }, ctx) {
      await checkDepth(workflows, ctx)
      const { id } = await delegate(team, task, ctx)
      const run = await ended(workflows, id, waitMs, ctx)
      if (run.status === 'running') return answerOf(`The team is still working; its run is ${id}.`)
      if (run.status === 'failed') throw runFailed(team, run)
      return answerOf(wordsOf(run.result as unknown as TeamResult))
    },
  })
}

const teamList = (known: readonly TeamDefinition[]) =>
  `Teams: ${known
    .slice(0, SHOWN)
    .map(({ name, description }) => (description ? `${name} (${description})` : name))
    .join(', ')}`

/** Prevents endless delegation between teams. A turn in a run has the id of the run as its request id. */
async function checkDepth(workflows: Workflows, ctx: CallContext): Promise<void> {
  const run = await workflows.get(ctx.requestId, ctx).catch((error: unknown) => {
    if (codeOf(error) === 'RUN_UNKNOWN') return undefined
    throw error
  })
  if (run && (run.input as { readonly delegated?: unknown }).delegated === true) throw delegatedAlready()
}

/** Waits for the end of a run, up to the limit. Cancels the run if the caller aborts. */
async function ended(workflows: Workflows, id: string, waitMs: number, ctx: CallContext): Promise<Run> {
  try {
    return await workflows.settled(id, waitMs, ctx)
  } catch (error) {
    if (ctx.signal.aborted) await workflows.cancel(id, { ...ctx, signal: AbortSignal.timeout(MARGIN_MS) }).catch(() => {})
    throw error
  }
}

function wordsOf({ answer, agreed, positions = {}, approved, reasons = [], partial, members }: TeamResult): string[] {
  const failed = Object.entries(members).flatMap(([name, { status, error }]) =>
    status === 'failed' || status === 'stopped' ? [`(${name} ${status}: ${error?.message})`] : []
  )
  const unanswered = partial && answer === null
  if (agreed === false || unanswered)
    return [
      unanswered
        ? `The team stopped before its end (${partial.reason}). What its members said last:`
        : 'The members did not agree. Their positions:',
      ...Object.entries(positions).map(([name, text]) => `## ${name}\n${text}`),
      ...failed,
    ]
  const verdict = approved === false ? ['(The critic did not approve it:', ...reasons.map(reason => `- ${reason}`), ')'] : []
  return [answer ?? '', ...verdict, ...failed]
}

/** Adds an item that lists the teams while any exist, and replaces it when they change. */
export function createOffer(slot: SlotView<TeamDefinition>, add: (known: readonly TeamDefinition[]) => () => void): () => void {
  let remove = () => {}
  return () => {
    remove()
    const known = slot.entries().map(([, team]) => team)
    remove = known.length > 0 ? add(known) : () => {}
  }
}
