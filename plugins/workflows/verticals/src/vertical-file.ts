import type { RuntimeItem } from '@svc/core'
import { TeamDefinitions, type Vertical, type VerticalPattern, Verticals, WorkflowDefinitions } from '@svc/core/contracts'
import type { Document, LineCounter, Node, Pair } from 'yaml'
import { type VerticalProblem, verticalInvalid } from './errors.ts'
import { VERTICAL, type VerticalFile } from './vertical-schema.ts'

/** The contributions of a vertical file: the vertical, its teams and its workflows. Throws VERTICAL_INVALID with all problems. */
export async function itemsOf(plugin: string, text: string): Promise<readonly RuntimeItem[]> {
  const read = await readText(text)
  const problems = read.problems.length > 0 ? read.problems : await problemsOf(read)
  if (problems.length > 0)
    throw verticalInvalid(
      plugin,
      problems.toSorted((a, b) => a.line - b.line)
    )
  const { name, teams, workflows, ...vertical } = read.value as VerticalFile
  const data: Vertical = { ...vertical, teams: Object.keys(teams), workflows: Object.keys(workflows) }
  return [
    { slot: Verticals, name, data, methods: [] },
    ...Object.entries(teams).map(([teamName, team]) => ({
      slot: TeamDefinitions,
      name: teamName,
      data: { ...team, name: teamName },
      methods: [],
    })),
    ...Object.entries(workflows).map(([flowName, flow]) => ({
      slot: WorkflowDefinitions,
      name: flowName,
      data: { ...flow, name: flowName },
      methods: [],
    })),
  ]
}

async function problemsOf({ value, line }: Read): Promise<readonly VerticalProblem[]> {
  const problems = schemaProblems(value)
  return Promise.all(problems.map(async ({ keys, ...problem }) => ({ line: await line(keys), path: pathOf(keys), ...problem })))
}

function schemaProblems(value: unknown): readonly SchemaProblem[] {
  const form = VERTICAL.check(value)
  if (form.length > 0)
    return form.map(({ keys, message, nearest }) => ({
      keys,
      message,
      ...(nearest ? { hint: `did you mean "${nearest}"?` } : {}),
    }))
  const file = value as VerticalFile
  const leads = Object.entries(file.teams).flatMap(([name, { members }]) => twoLeads(name, Object.values(members)))
  return [...file.patterns.flatMap((pattern, at) => patternProblems(pattern, file, at)), ...leads]
}

interface SchemaProblem {
  readonly keys: readonly string[]
  readonly message: string
  readonly hint?: string
}

const pathOf = ([first = '', ...keys]: readonly string[]) =>
  [first, ...keys.map(key => (/^\d+$/.test(key) ? `[${key}]` : `.${key}`))].join('')

function patternProblems({ team, workflow }: VerticalPattern, file: VerticalFile, at: number): SchemaProblem[] {
  const keys = ['patterns', String(at)]
  return [
    ...(team === undefined && workflow === undefined ? [{ keys, message: 'must name a team, a workflow or both' }] : []),
    ...undefinedName([...keys, 'team'], team, file.teams),
    ...undefinedName([...keys, 'workflow'], workflow, file.workflows),
  ]
}

const undefinedName = (keys: readonly string[], name: string | undefined, definitions: object): SchemaProblem[] =>
  name === undefined || Object.hasOwn(definitions, name) ? [] : [{ keys, message: `"${name}" is not defined in this file` }]

const twoLeads = (team: string, members: readonly { readonly lead?: boolean }[]): SchemaProblem[] =>
  members.filter(({ lead }) => lead === true).length > 1
    ? [{ keys: ['teams', team, 'members'], message: 'must have at most one lead' }]
    : []

/** Parsed YAML or JSON, with line numbers. */
interface Read {
  readonly value: unknown
  /** Syntax errors. */
  readonly problems: readonly VerticalProblem[]
  /** The line of a key or item, or of the nearest parent. */
  readonly line: (keys: readonly string[]) => number | Promise<number>
}

/** Reads JSON, which takes a hundredth of the time of YAML, or YAML. Line numbers are computed on demand. */
async function readText(text: string): Promise<Read> {
  return asJson(text) ?? readYaml(text)
}

function asJson(text: string): Read | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    return { value: JSON.parse(text) as unknown, problems: [], line: async keys => (await readYaml(text)).line(keys) }
  } catch {
    // The YAML parser reports errors with their line
    return undefined
  }
}

/** Reads YAML. Duplicate keys are errors. */
async function readYaml(text: string): Promise<Read> {
  const { isMap, isScalar, LineCounter, parseDocument } = await import('yaml')
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter })
  // Later errors mostly follow from the first
  const problems = document.errors.slice(0, 1).map(error => ({
    line: error.linePos?.[0].line ?? 1,
    path: '',
    message: error.message.split(' at line')[0]!,
  }))
  const keyOf = (keys: readonly string[]) => {
    const parent = document.getIn(keys.slice(0, -1).map(indexed), true)
    const pair = isMap(parent)
      ? parent.items.find(item => isScalar(item.key) && String(item.key.value) === keys.at(-1))
      : undefined
    return (pair as Pair<Node> | undefined)?.key
  }
  return { ...valueOf(document, problems), line: keys => lineOf(document, counter, keyOf, keys) }
}

/** The parser rejects unknown and exploding aliases with its own message. */
function valueOf(document: Document, problems: readonly VerticalProblem[]): Pick<Read, 'value' | 'problems'> {
  if (problems.length > 0) return { value: undefined, problems }
  try {
    return { value: document.toJS() as unknown, problems }
  } catch (error) {
    return { value: undefined, problems: [{ line: 1, path: '', message: (error as Error).message }] }
  }
}

const indexed = (key: string) => (/^\d+$/.test(key) ? Number(key) : key)

function lineOf(
  document: Document,
  counter: LineCounter,
  keyOf: (keys: readonly string[]) => Node | undefined,
  keys: readonly string[]
) {
  for (let depth = keys.length; depth > 0; depth--) {
    const at = keys.slice(0, depth)
    const node = keyOf(at) ?? (document.getIn(at.map(indexed), true) as Node | undefined)
    if (node?.range) return counter.linePos(node.range[0]).line
  }
  return 1
}
