import type { Use } from '@svc/core'
import type { TeamDefinition, Teams, WorkflowInfo, Workflows } from '@svc/core/contracts'
import type { Listed } from './finder.ts'

export interface CatalogParts {
  readonly teams: Teams | undefined
  readonly workflows: Workflows | undefined
}

/** The teams and workflows that there are and can run. */
export interface Catalog {
  readonly teams: ReadonlySet<string>
  readonly workflows: ReadonlyMap<string, WorkflowInfo>
  readonly listed: readonly Listed[]
}

export async function catalogOf({ teams, workflows }: CatalogParts, use: Use): Promise<Catalog> {
  const [someTeams = [], someWorkflows = []] = await Promise.all([teams?.list(use), workflows?.list(use)])
  const [good, running] = [someTeams.filter(isSound), someWorkflows.filter(isSound)]
  const listed = [...good.map(one => listedOf('team', one)), ...running.map(one => listedOf('workflow', one))]
  return { teams: new Set(good.map(({ name }) => name)), workflows: new Map(running.map(one => [one.name, one])), listed }
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

/** Tool calls that a team may make in all; null where one of its members has no limit. */
export function budgetOf({ budget, members }: TeamDefinition): number | null {
  if (budget?.tool_calls !== undefined) return budget.tool_calls
  const each = Object.values(members).map(member => member.budget?.tool_calls)
  return each.every(one => one !== undefined) ? each.reduce((sum, one) => sum + one, 0) : null
}

/** How many members have each role. */
export function rolesOf({ members }: TeamDefinition): Readonly<Record<string, number>> {
  const groups = Map.groupBy(Object.values(members), member => member.role)
  return Object.fromEntries([...groups].map(([role, those]) => [role, those.length]))
}
