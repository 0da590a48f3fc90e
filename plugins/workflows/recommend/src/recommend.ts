import type { SlotView, Use } from '@svc/core'
import type {
  Recommend,
  Recommendation,
  RecommendRequest,
  RecommendedAction,
  RecommendedTeam,
  Vertical,
} from '@svc/core/contracts'
import { actionOf, acts, type Effects } from './actions.ts'
import { budgetOf, type Catalog, type CatalogParts, catalogOf, rolesOf } from './catalog.ts'
import { taskInvalid } from './errors.ts'
import { Finder } from './finder.ts'
import { byPatterns, type Candidate } from './patterns.ts'
import { type Task, taskOf } from './words.ts'

export interface RecommendParts extends CatalogParts, Effects {
  readonly verticals: SlotView<Vertical>
  /** Whether a team that acts needs somebody's yes. */
  readonly approval: boolean
}

/** The most characters of a task type: it is a label. */
const LONGEST = 200

/** Makes the service. */
export function createRecommend(parts: RecommendParts): Recommend {
  const finder = new Finder()
  return {
    async recommend({ taskType, complexity, mode = 'build', vertical }, use) {
      const action = actionOf(mode, complexity)
      const task = checked(taskType)
      const catalog = await catalogOf(parts, use)
      const found = await finder.find(task, catalog.listed)
      const asked = parts.verticals.entries().filter(([name]) => vertical === undefined || name === vertical)
      const each = asked.map(([name, one]) => entryOf(parts, { name, vertical: one, task, catalog, found, action }, use))
      return (await Promise.all(each)).filter(one => one !== undefined).toSorted(surest)
    },
  }
}

function checked(taskType: RecommendRequest['taskType']): Task {
  if (taskType.length > LONGEST) throw taskInvalid(`has more than ${LONGEST} characters`)
  const task = taskOf(taskType)
  if (task.words.length === 0) throw taskInvalid('has no word in it')
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

async function entryOf(parts: RecommendParts, question: Question, use: Use): Promise<Recommendation | undefined> {
  const { name, action } = question
  const candidates = candidatesOf(question)
  const [team, workflow] = [candidates.find(one => one.kind === 'team'), candidates.find(one => one.kind === 'workflow')]
  if (!team && !workflow) return undefined
  const told = team && (await teamOf(parts, team, use))
  return {
    vertical: name,
    action: told?.acts && parts.approval && action === 'auto_spawn' ? 'require_approval' : action,
    team: told?.team ?? null,
    workflow: workflow ? workflowOf(workflow, question.catalog) : null,
  }
}

/** What of a vertical's own there is, the surest first; of two alike the one that a pattern names, in the order of the patterns. */
function candidatesOf({ vertical, task, catalog, found }: Question): readonly Candidate[] {
  const own = { team: new Set(vertical.teams), workflow: new Set(vertical.workflows) }
  const there = { team: catalog.teams, workflow: catalog.workflows }
  const all = [...byPatterns(vertical, task), ...found]
  return all
    .filter(({ kind, name }) => own[kind].has(name) && there[kind].has(name))
    .toSorted((a, b) => b.confidence - a.confidence)
}

async function teamOf(parts: RecommendParts, { name, confidence, reason }: Candidate, use: Use) {
  const { info, definition } = await parts.teams!.show(name, use)
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
