import type { SlotView, CallContext } from '@svc/core'
import type {
  Mode,
  Recommend,
  Recommendation,
  RecommendedAction,
  RecommendedTeam,
  RecommendRequest,
  TeamDefinition,
  TeamMember,
  Teams,
  Tool,
  Vertical,
  WorkflowInfo,
  Workflows,
} from '@svc/core/contracts'
import { taskInvalid, unknownWord } from './errors.ts'
import { byPatterns, type Candidate, Finder, type Listed, type Task, taskOf } from './finder.ts'

export interface RecommendOptions extends CatalogOptions, Effects {
  readonly verticals: SlotView<Vertical>
  /** Whether teams with side effects need an approval. */
  readonly approval: boolean
}

/** Maximum length of a task type, which is a label. */
const LONGEST = 200

/** Creates the service. */
export function createRecommend(parts: RecommendOptions): Recommend {
  const finder = new Finder()
  return {
    async recommend({ taskType, complexity, mode = 'build', vertical }, ctx) {
      const action = actionOf(mode, complexity)
      const task = checked(taskType)
      const catalog = await catalogOf(parts, ctx)
      const found = await finder.find(task, catalog.listed)
      const asked = parts.verticals.entries().filter(([name]) => vertical === undefined || name === vertical)
      const each = asked.map(([name, request]) => entryOf(parts, { name, vertical: request, task, catalog, found, action }, ctx))
      return (await Promise.all(each)).filter(entry => entry !== undefined).toSorted(surest)
    },
  }
}

function checked(taskType: RecommendRequest['taskType']): Task {
  if (taskType.length > LONGEST) throw taskInvalid(`has more than ${LONGEST} characters`)
  const task = taskOf(taskType)
  if (task.words.length === 0) throw taskInvalid('contains no word')
  return task
}

interface Question {
  readonly name: string
  readonly vertical: Vertical
  readonly task: Task
  readonly catalog: Catalog
  readonly found: readonly Candidate[]
  readonly action: RecommendedAction
}

async function entryOf(parts: RecommendOptions, question: Question, ctx: CallContext): Promise<Recommendation | undefined> {
  const { name, action } = question
  const candidates = candidatesOf(question)
  const [team, workflow] = [
    candidates.find(candidate => candidate.kind === 'team'),
    candidates.find(candidate => candidate.kind === 'workflow'),
  ]
  if (!team && !workflow) return undefined
  const reported = team && (await teamOf(parts, team, ctx))
  return {
    vertical: name,
    action: reported?.acts && parts.approval && action === 'auto_spawn' ? 'require_approval' : action,
    team: reported?.team ?? null,
    workflow: workflow ? workflowOf(workflow, question.catalog) : null,
  }
}

/** The available teams and workflows of a vertical, highest confidence first. With equal confidence, patterns win in their order. */
function candidatesOf({ vertical, task, catalog, found }: Question): readonly Candidate[] {
  const own = { team: new Set(vertical.teams), workflow: new Set(vertical.workflows) }
  const there = { team: catalog.teams, workflow: catalog.workflows }
  const all = [...byPatterns(vertical, task), ...found]
  return all
    .filter(({ kind, name }) => own[kind].has(name) && there[kind].has(name))
    .toSorted((a, b) => b.confidence - a.confidence)
}

async function teamOf(parts: RecommendOptions, { name, confidence, reason }: Candidate, ctx: CallContext) {
  const { info, definition } = await parts.teams!.show(name, ctx)
  const [suggestedBudget, roles] = [budgetOf(definition), rolesOf(definition)]
  const team: RecommendedTeam = {
    name,
    confidence,
    reason,
    formation: definition.formation,
    suggestedBudget,
    roles,
    source: info.source,
  }
  return { team, acts: acts(definition, parts) }
}

const workflowOf = ({ name, confidence, reason, trigger }: Candidate, { workflows }: Catalog) => ({
  name,
  confidence,
  reason,
  trigger,
  steps: workflows.get(name)!.nodes,
})

const sureness = ({ team, workflow }: Recommendation) => Math.max(team?.confidence ?? 0, workflow?.confidence ?? 0)
const surest = (a: Recommendation, b: Recommendation) => sureness(b) - sureness(a) || (a.vertical < b.vertical ? -1 : 1)

const LEVELS = ['trivial', 'low', 'medium', 'high', 'extreme'] as const
type Level = (typeof LEVELS)[number]
const ALIASES: Readonly<Record<string, Level>> = { simple: 'low', moderate: 'medium', complex: 'high', very_high: 'extreme' }

/** Actions of each mode, for the levels from trivial to extreme. */
const ACTIONS: Readonly<Record<string, readonly RecommendedAction[]>> = {
  build: ['none', 'none', 'suggest', 'auto_spawn', 'auto_spawn'],
  plan: ['none', 'none', 'suggest', 'suggest', 'suggest'],
  review: ['none', 'none', 'suggest', 'suggest', 'auto_spawn'],
  delegate: ['none', 'suggest', 'auto_spawn', 'auto_spawn', 'auto_spawn'],
  explore: ['none', 'none', 'none', 'suggest', 'suggest'],
}

/** The action for a complexity and mode. Throws INVALID_VALUE. */
function actionOf(mode: string, complexity: string): RecommendedAction {
  const level = levelOf(complexity)
  const row = Object.hasOwn(ACTIONS, mode) ? ACTIONS[mode] : undefined
  if (!row) throw unknownWord('mode', mode, Object.keys(ACTIONS))
  return row[LEVELS.indexOf(level)]!
}

function levelOf(complexity: string): Level {
  const level = Object.hasOwn(ALIASES, complexity) ? ALIASES[complexity] : LEVELS.find(item => item === complexity)
  if (!level) throw unknownWord('complexity', complexity, [...LEVELS, ...Object.keys(ALIASES)])
  return level
}

/** The effects of tools and modes. */
interface Effects {
  readonly tools: SlotView<Tool>
  readonly modes: SlotView<Mode>
}

/** Whether a member of a team can write or execute. A member without a list of tools has those of its mode. */
const acts = ({ members }: TeamDefinition, effects: Effects): boolean =>
  Object.values(members).some(member => effectsOf(member, effects).some(effect => effect === 'write' || effect === 'execute'))

/** Default mode of a member. */
const USUAL = 'build'

function effectsOf({ tools, mode = USUAL }: TeamMember, effects: Effects): readonly string[] {
  const allowed = effects.modes.get(mode)?.effects ?? ['write']
  return tools === undefined
    ? allowed
    : tools.flatMap(name => effects.tools.get(name)?.effects ?? []).filter(item => allowed.includes(item))
}

interface CatalogOptions {
  readonly teams: Teams | undefined
  readonly workflows: Workflows | undefined
}

/** The teams and workflows without problems. */
interface Catalog {
  readonly teams: ReadonlySet<string>
  readonly workflows: ReadonlyMap<string, WorkflowInfo>
  readonly listed: readonly Listed[]
}

async function catalogOf({ teams, workflows }: CatalogOptions, ctx: CallContext): Promise<Catalog> {
  const [someTeams = [], someWorkflows = []] = await Promise.all([teams?.list(ctx), workflows?.list(ctx)])
  const [good, running] = [someTeams.filter(isSound), someWorkflows.filter(isSound)]
  const listed = [...good.map(item => listedOf('team', item)), ...running.map(item => listedOf('workflow', item))]
  return { teams: new Set(good.map(({ name }) => name)), workflows: new Map(running.map(item => [item.name, item])), listed }
}

const isSound = ({ problems }: { readonly problems?: readonly unknown[] }) => problems === undefined

const listedOf = (
  kind: Listed['kind'],
  { name, description = '' }: { readonly name: string; readonly description?: string }
): Listed => ({
  kind,
  name,
  description,
})

/** Maximum tool calls of a team; null if a member has no limit. */
function budgetOf({ budget, members }: TeamDefinition): number | null {
  if (budget?.tool_calls !== undefined) return budget.tool_calls
  const each = Object.values(members).map(member => member.budget?.tool_calls)
  return each.every(item => item !== undefined) ? each.reduce((sum, item) => sum + item, 0) : null
}

/** Number of members by role. */
function rolesOf({ members }: TeamDefinition): Readonly<Record<string, number>> {
  const groups = Map.groupBy(Object.values(members), member => member.role)
  return Object.fromEntries([...groups].map(([role, those]) => [role, those.length]))
}
