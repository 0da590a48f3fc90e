import type { RuntimeItem } from '@svc/core'
import { TeamDefinitions, type Vertical, type VerticalPattern, Verticals, WorkflowDefinitions } from '@svc/core/contracts'
import { verticalInvalid } from './errors.ts'
import { type Problem, type Read, readText } from './lines.ts'
import { VERTICAL, type VerticalFile } from './vertical-schema.ts'

/** What a vertical's file contributes: itself, its teams and its workflows. Throws VERTICAL_INVALID with all that is wrong with it. */
export async function itemsOf(plugin: string, text: string): Promise<readonly RuntimeItem[]> {
  const read = await readText(text)
  const problems = read.faults.length > 0 ? read.faults : await problemsOf(read)
  if (problems.length > 0)
    throw verticalInvalid(
      plugin,
      problems.toSorted((a, b) => a.line - b.line)
    )
  const { name, teams, workflows, ...vertical } = read.value as VerticalFile
  const data: Vertical = { ...vertical, teams: Object.keys(teams), workflows: Object.keys(workflows) }
  return [
    { slot: Verticals, name, data, methods: [] },
    ...Object.entries(teams).map(([one, team]) => ({
      slot: TeamDefinitions,
      name: one,
      data: { ...team, name: one },
      methods: [],
    })),
    ...Object.entries(workflows).map(([one, flow]) => ({
      slot: WorkflowDefinitions,
      name: one,
      data: { ...flow, name: one },
      methods: [],
    })),
  ]
}

async function problemsOf({ value, line }: Read): Promise<readonly Problem[]> {
  const faults = faultsOf(value)
  return Promise.all(faults.map(async ({ keys, ...told }) => ({ line: await line(keys), path: pathOf(keys), ...told })))
}

function faultsOf(value: unknown): readonly Fault[] {
  const form = VERTICAL.check(value)
  if (form.length > 0)
    return form.map(({ keys, message, nearest }) => ({
      keys,
      message,
      ...(nearest ? { hint: `did you mean "${nearest}"?` } : {}),
    }))
  const file = value as VerticalFile
  const leads = Object.entries(file.teams).flatMap(([name, { members }]) => twoLeads(name, Object.values(members)))
  return [...file.patterns.flatMap((pattern, at) => strangePattern(pattern, file, at)), ...leads]
}

interface Fault {
  readonly keys: readonly string[]
  readonly message: string
  readonly hint?: string
}

const pathOf = ([first = '', ...keys]: readonly string[]) =>
  [first, ...keys.map(key => (/^\d+$/.test(key) ? `[${key}]` : `.${key}`))].join('')

function strangePattern({ team, workflow }: VerticalPattern, file: VerticalFile, at: number): Fault[] {
  const keys = ['patterns', String(at)]
  return [
    ...(team === undefined && workflow === undefined ? [{ keys, message: 'must name a team, a workflow or both' }] : []),
    ...missing([...keys, 'team'], team, file.teams),
    ...missing([...keys, 'workflow'], workflow, file.workflows),
  ]
}

const missing = (keys: readonly string[], name: string | undefined, there: object): Fault[] =>
  name === undefined || Object.hasOwn(there, name) ? [] : [{ keys, message: `"${name}" is not defined in this file` }]

const twoLeads = (team: string, members: readonly { readonly lead?: boolean }[]): Fault[] =>
  members.filter(({ lead }) => lead === true).length > 1
    ? [{ keys: ['teams', team, 'members'], message: 'must have one lead at most' }]
    : []
