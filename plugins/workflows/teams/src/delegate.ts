import { type CallContext, codeOf, type SlotView } from '@svc/core'
import type { Run, TeamDefinition, Tool, Workflows } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { delegatedAlready, runFailed } from './errors.ts'
import type { TeamResult } from './team-node.ts'
import type { Delegation } from './teams.ts'

export interface DelegateParts {
  readonly delegate: Delegation
  readonly workflows: Workflows
  readonly waitMs: number
}

/** Beyond what it waits itself: to answer, or to end what nobody waits for. */
const MARGIN_MS = 5_000
/** So many teams are named to the model. */
const SHOWN = 30

/** The tool by which a model gives work to a team; it is told which teams there are. */
export function createDelegate({ delegate, workflows, waitMs }: DelegateParts, known: readonly TeamDefinition[]): Tool {
  return toolOf<{ readonly team: string; readonly task: string }>({
    description: `Gives a task to a team of models, and answers what it made of it. ${toPublicError(known)}`,
    category: 'teams',
    // what its members may do
    effects: ['read', 'write', 'execute', 'network'],
    modes: ['delegate'],
    timeoutMs: waitMs + MARGIN_MS,
    parameters: objectOf({
      team: { type: 'string', minLength: 1, maxLength: 100, description: 'The name of a team' },
      task: {
        type: 'string',
        minLength: 1,
        maxLength: 100_000,
        description: 'All that the team has to know: it sees nothing else',
      },
    }),
    async call({ team, task }, ctx) {
      await checkDepth(workflows, ctx)
      const { id } = await delegate(team, task, ctx)
      const run = await ended(workflows, id, waitMs, ctx)
      if (run.status === 'running') return answerOf(`The team still works on it; its run is ${id}.`)
      if (run.status === 'failed') throw runFailed(team, run)
      return answerOf(wordsOf(run.result as unknown as TeamResult))
    },
  })
}

const toPublicError = (known: readonly TeamDefinition[]) =>
  `Teams: ${known
    .slice(0, SHOWN)
    .map(({ name, description }) => (description ? `${name} (${description})` : name))
    .join(', ')}`

/** Teams that delegate to teams would never come to an end. A turn within a run has the id of the run as that of its request. */
async function checkDepth(workflows: Workflows, ctx: CallContext): Promise<void> {
  const run = await workflows.get(ctx.requestId, ctx).catch((error: unknown) => {
    if (codeOf(error) === 'RUN_UNKNOWN') return undefined
    throw error
  })
  if (run && (run.input as { readonly delegated?: unknown }).delegated === true) throw delegatedAlready()
}

/** The run once it has ended, or after so long; one that nobody waits for any more is cancelled. */
async function ended(workflows: Workflows, id: string, waitMs: number, ctx: CallContext): Promise<Run> {
  try {
    return await workflows.settled(id, waitMs, ctx)
  } catch (error) {
    if (ctx.signal.aborted) await workflows.cancel(id, { ...ctx, signal: AbortSignal.timeout(MARGIN_MS) }).catch(() => {})
    throw error
  }
}

function wordsOf({ answer, agreed, positions = {}, approved, reasons = [], members }: TeamResult): string[] {
  const failed = Object.entries(members).flatMap(([name, { status, error }]) =>
    status === 'failed' ? [`(${name} has failed: ${error?.message})`] : []
  )
  if (agreed === false)
    return [
      'The members did not agree. Their positions:',
      ...Object.entries(positions).map(([name, text]) => `## ${name}\n${text}`),
      ...failed,
    ]
  const verdict = approved === false ? ['(The critic has not approved it:', ...reasons.map(reason => `- ${reason}`), ')'] : []
  return [answer ?? '', ...verdict, ...failed]
}

/** Offers something that tells of the teams there are, as long as there is one; anew whenever they have changed. */
export function createOffer(slot: SlotView<TeamDefinition>, add: (known: readonly TeamDefinition[]) => () => void): () => void {
  let remove = () => {}
  return () => {
    remove()
    const known = slot.entries().map(([, team]) => team)
    remove = known.length > 0 ? add(known) : () => {}
  }
}
