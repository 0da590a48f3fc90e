import { BOOLEAN, list, nullable, OBJECT, object, ok, STRING, text, TIME, words } from '@svc/api-types'
import { type CallContext, type JsonSchema, type SlotView, svcError } from '@svc/core'
import type {
  Chat,
  ChatQuestion,
  Json,
  Route,
  RouteReply,
  RunQuestion,
  WorkflowNode,
  Workflows,
  WorkflowText,
} from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import type { DrawnNode, GraphState } from '@svc/workflow-lang'
import { PROBLEM, problemRecord, STALE, timeRecord } from '../records.ts'

const PATH = '/api/v1/workflows'
const [PAGE, MOST_LISTED] = [50, 200]
/** Characters of a text: a worker checks it without a pause. Its JSON can be longer. */
const MAX_TEXT = 262_144
const BODY_LIMIT = 1_048_576
/** Longer drafts are not drawn: they would be parsed a second time. */
const MAX_DRAWN = 65_536

export interface WorkflowServices {
  readonly workflows: Workflows
  readonly nodes: SlotView<WorkflowNode>
  readonly chat?: Chat | undefined
}

const SOURCE: JsonSchema = {
  ...(object({
    name: STRING,
    source: { ...(STRING as object), description: 'The plugin, or the file relative to its root.' },
    format: { ...(words('yaml', 'json', 'code') as object), description: 'json for the definition of a plugin.' },
    text: { ...(nullable('string') as object), description: 'With its comments. null: it is code.' },
    version: { ...(STRING as object), description: 'As in the header ETag, for If-Match.' },
    writable: BOOLEAN,
    problems: list(PROBLEM),
  }) as object),
  title: 'WorkflowSource',
}
const DRAWN: JsonSchema = {
  type: 'object',
  title: 'DrawnNode',
  properties: {
    id: { ...(STRING as object), description: 'Its path: each/do/fetch.' },
    name: STRING,
    type: STRING,
    status: { ...(nullable('string') as object), description: 'Its state in the run of the query.' },
    edges: list(object({ to: STRING, label: nullable('string'), kind: words('next', 'catch') })),
    bodies: { ...(list(object({ name: STRING, nodes: list(OBJECT) })) as object), description: 'Nodes of the same form.' },
  },
  required: ['id', 'name', 'type', 'status', 'edges', 'bodies'],
}
const NODE_TYPE: JsonSchema = {
  ...(object({
    type: STRING,
    description: STRING,
    plugin: nullable('string'),
    settings: { ...(OBJECT as object), description: 'The JSON Schema of its own keys.' },
    output: { type: ['object', 'boolean', 'null'], description: 'The JSON Schema of its output.' },
    branches: { description: 'Its branches; any: its settings decide; null: none.' },
    body: { type: ['string', 'null'], enum: ['do', 'bodies', null] },
    vars: { ...(OBJECT as object), description: 'Further variables of the expressions in its bodies, with schemas.' },
    repeatable: { description: 'true, false, or itself.' },
  }) as object),
  title: 'WorkflowNodeType',
}
const QUESTION: JsonSchema = {
  ...(object({
    workflow_id: STRING,
    workflow: STRING,
    owner: STRING,
    step: STRING,
    node: STRING,
    kind: words('approval', 'choice', 'input'),
    message: STRING,
    choices: { type: ['array', 'null'], items: STRING },
    schema: { type: ['object', 'boolean', 'null'] },
    since: TIME,
    until: { type: ['string', 'null'], format: 'date-time' },
    answer_url: { ...(STRING as object), description: 'Path for the answer: POST {step, value}.' },
  }) as object),
  title: 'RunQuestion',
}
const CHAT_QUESTION: JsonSchema = {
  ...(object({
    request_id: STRING,
    call_id: STRING,
    conversation_id: nullable('string'),
    owner: STRING,
    tool: STRING,
    arguments: OBJECT,
    question: STRING,
    form: {
      type: ['object', 'null'],
      description:
        'What a tool of a turn wants to know: schema is the JSON Schema of the content of the answer, url a page to open.',
    },
    requests: { type: ['object', 'null'], description: 'Input requests of MCP by key, of a call of a tool outside of a turn.' },
    since: TIME,
    until: TIME,
    turn_id: { ...(nullable('string') as object), description: 'The turn, for GET /api/v1/chat/stream/{turn_id}.' },
    interrupted: {
      ...(BOOLEAN as object),
      description: 'The worker of the turn has exited. An answer continues the turn; until then its stream is unknown (404).',
    },
    answerable: { ...(BOOLEAN as object), description: 'Only the principal of the turn can answer.' },
    answer_url: STRING,
  }) as object),
  title: 'ChatQuestion',
}
const closed = (schema: JsonSchema): JsonSchema => ({ ...(schema as object), additionalProperties: false })
const workflowQuery = object({
  workflow: { ...(text('Name of the workflow, or path of a file below a workflow root.') as object), maxLength: 1_000 },
})
const draftText: JsonSchema = { type: 'string', maxLength: MAX_TEXT, description: 'YAML or JSON.' }

/** Routes for the texts and drawings of workflows, and for open questions. */
export const createWorkflowRoutes = (services: WorkflowServices, publish: Publish): Record<string, Route> => ({
  workflow_source: {
    method: 'GET',
    path: `${PATH}/source`,
    summary: 'Read the text of a workflow',
    scope: 'workflows',
    query: workflowQuery,
    responses: ok('The text. The header ETag has its version.', SOURCE),
    handle: async ({ query }, ctx) => sourceReply(await services.workflows.source(query.workflow!, ctx)),
  },
  workflow_save: saveRoute(services, publish),
  workflow_drawing: drawingRoute(services),
  workflow_svg: svgRoute(services),
  workflow_nodes: {
    method: 'GET',
    path: `${PATH}/nodes`,
    summary: 'List the types of nodes with their JSON Schemas',
    scope: 'workflows',
    responses: ok('The types, sorted by name.', object({ nodes: list(NODE_TYPE) })),
    handle: async () => ({ body: { nodes: nodeRecords(services.nodes) } }),
  },
  workflow_schema: schemaRoute(services),
  workflow_validate: validateRoute(services),
  workflow_questions: questionsRoute(services),
})

const saveRoute = ({ workflows }: WorkflowServices, publish: Publish): Route => ({
  method: 'PUT',
  conditional: 'or-new',
  path: `${PATH}/source`,
  summary: 'Save the text of a workflow',
  description:
    'Needs If-Match with the version that it replaces, or If-None-Match: * for a workflow without a file. A text with problems is refused, and code is never written. A new file is in the workflows folder of the svc home.',
  scope: 'admin',
  query: object({ workflow: { type: 'string', pattern: '^[a-z][a-z0-9_-]{0,63}$', description: 'Name of the workflow.' } }),
  body: closed(object({ text: draftText })),
  bodyLimit: BODY_LIMIT,
  responses: { ...ok('It is saved. The header ETag has its new version.', SOURCE), ...STALE },
  async handle({ query, body, headers }, ctx) {
    const workflow = query.workflow!
    const { text: source } = body as unknown as { readonly text: string }
    const replaces = replacedVersion(headers)
    const saved = await workflows.save({ workflow, text: source, replaces }, ctx)
    const before = replaces === 'new' ? undefined : { version: replaces, file: saved.info.source }
    publish(
      {
        type: 'workflow_saved',
        subject: `workflows/${workflow}`,
        before,
        after: { version: saved.version, file: saved.info.source },
      },
      ctx
    )
    return sourceReply(saved)
  },
})

/** What a change replaces. Without a header, the change of another could be undone. Throws MISSING_FIELD, INVALID_VALUE, PRECONDITION_FAILED. */
function replacedVersion({ 'if-match': match, 'if-none-match': none }: Readonly<Record<string, string>>): string {
  if (none !== undefined) {
    if (none.trim() === '*' && match === undefined) return 'new'
    throw headerInvalid('If-None-Match', 'must be *, without If-Match')
  }
  if (match === undefined || match.trim() === '')
    throw svcError('MISSING_FIELD', 'Missing required header: If-Match', {
      details: { required_fields: ['If-Match'], provided_fields: [] },
      hint: 'Send the ETag of the source, or If-None-Match: * for a new workflow',
    })
  if (match.trim() === '*') return 'any'
  const [, weak, version] = /^(W\/)?"([\w-]{1,200})"$/.exec(match.trim()) ?? []
  if (version === undefined) throw headerInvalid('If-Match', 'must be one ETag or *')
  if (weak === undefined) return version
  throw svcError('PRECONDITION_FAILED', 'If-Match needs a strong ETag', { details: { field: 'If-Match' } })
}

const headerInvalid = (field: string, reason: string) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason } })

const drawingQuery = object(
  {
    ...(workflowQuery as { properties: Record<string, JsonSchema> }).properties,
    run: {
      ...(text('A run: its definition is drawn with the states of its nodes, whatever the current one is.') as object),
      maxLength: 200,
    },
  },
  []
)

/** What a drawing shows: the definition, and the states of the nodes in a run. */
async function drawnParts(workflows: Workflows, { workflow, run }: Readonly<Record<string, string>>, ctx: CallContext) {
  const { drawnNodes, drawSvg, stateOf } = await import('@svc/workflow-lang')
  if (run === undefined) {
    if (workflow === undefined) throw workflowMissing()
    const { definition } = await workflows.show(workflow, ctx)
    return { definition, state: new Map() as GraphState, drawnNodes, drawSvg }
  }
  const [definition, steps] = await Promise.all([workflows.definitionOf(run, ctx), workflows.steps(run, ctx)])
  return { definition, state: stateOf(definition, steps), drawnNodes, drawSvg }
}

const workflowMissing = () =>
  svcError('MISSING_FIELD', 'Missing required field: workflow, or run', {
    details: { required_fields: ['workflow'], provided_fields: [] },
  })

const UNKNOWN = { '404': { ...STALE['412'], description: 'No workflow has this name, or no run has this id.' } }

const drawingRoute = ({ workflows }: WorkflowServices): Route => ({
  method: 'GET',
  path: `${PATH}/drawing`,
  summary: 'Read the drawing of a workflow as JSON, with the node states of a run',
  scope: 'workflows',
  query: drawingQuery,
  responses: { ...ok('The nodes in reading order.', object({ name: STRING, nodes: list(DRAWN) })), ...UNKNOWN },
  async handle({ query }, ctx) {
    const { definition, state, drawnNodes } = await drawnParts(workflows, query, ctx)
    return { body: { name: definition.name, nodes: drawnNodes(definition).map(node => drawnRecord(node, state)) } }
  },
})

const svgRoute = ({ workflows }: WorkflowServices): Route => ({
  method: 'GET',
  path: `${PATH}/svg`,
  summary: 'Draw a workflow of at most 150 nodes as SVG, with the states of a run',
  scope: 'workflows',
  query: drawingQuery,
  responses: {
    '200': { description: 'The drawing. It loads nothing.', schema: STRING, contentType: 'image/svg+xml' },
    ...UNKNOWN,
  },
  async handle({ query }, ctx) {
    const { definition, state, drawSvg } = await drawnParts(workflows, query, ctx)
    return svgReply(drawSvg(definition, { state }))
  },
})

const svgReply = (svg: string): RouteReply => ({
  text: svg,
  headers: {
    'Content-Type': 'image/svg+xml; charset=utf-8',
    'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  },
})

const schemaRoute = ({ nodes }: WorkflowServices): Route => ({
  method: 'GET',
  path: `${PATH}/schema`,
  summary: 'Read the JSON Schema of definitions, with all types of nodes, for editors',
  scope: 'workflows',
  responses: ok('The schema. It does not check names, edges and expressions.', OBJECT),
  async handle() {
    const { workflowSchema } = await import('@svc/workflow-lang')
    return { body: workflowSchema(nodes.entries().toSorted(([a], [b]) => (a < b ? -1 : 1))) as { [key: string]: Json } }
  },
})

const validateRoute = ({ workflows }: WorkflowServices): Route => ({
  method: 'POST',
  path: `${PATH}/validate`,
  summary: 'Check a draft of a workflow; svc does not execute or store it',
  scope: 'workflows',
  body: closed(
    object(
      {
        text: draftText,
        file: { ...(text('The name of its file, which the name of the workflow must match.') as object), maxLength: 200 },
      },
      ['text']
    )
  ),
  bodyLimit: BODY_LIMIT,
  responses: ok(
    'The problems with line and column, and the drawing as far as it can be read.',
    object({
      valid: BOOLEAN,
      problems: list(PROBLEM),
      drawing: { oneOf: [object({ name: STRING, nodes: list(DRAWN) }), { type: 'null' }] },
    })
  ),
  async handle({ body }, ctx) {
    const { text: draft, file = 'workflow' } = body as unknown as { readonly text: string; readonly file?: string }
    const problems = await workflows.validate({ text: draft, file }, ctx)
    return {
      body: { valid: problems.length === 0, problems: problems.map(problemRecord), drawing: await draftDrawing(draft, file) },
    }
  },
})

async function draftDrawing(draft: string, file: string) {
  if (draft.length > MAX_DRAWN) return null
  const { drawnNodes, plainDefinition } = await import('@svc/workflow-lang')
  const definition = plainDefinition(draft, file)
  if (Object.keys(definition.nodes).length === 0) return null
  return { name: definition.name, nodes: drawnNodes(definition).map(node => drawnRecord(node, new Map())) }
}

const questionsRoute = ({ workflows, chat }: WorkflowServices): Route => ({
  method: 'GET',
  path: `${PATH}/questions`,
  summary: 'List the open questions of runs and chats',
  description: "The caller's own; with the scope admin all. Questions of runs are paged; those of chats are on the first page.",
  scope: 'read',
  query: object(
    {
      limit: { type: 'integer', minimum: 1, maximum: MOST_LISTED, description: `Maximum entries of the page; default ${PAGE}.` },
      cursor: { ...(text('The next_cursor of the previous page.') as object), maxLength: 1_000 },
    },
    []
  ),
  responses: ok(
    'The questions.',
    object({ questions: list(QUESTION), chats: list(CHAT_QUESTION), next_cursor: nullable('string') })
  ),
  async handle({ query: { limit, cursor } }, ctx) {
    const query = { limit: limit === undefined ? PAGE : Number(limit), ...(cursor === undefined ? {} : { cursor }) }
    const [page, chats] = await Promise.all([
      workflows.questions(query, ctx),
      cursor === undefined && chat ? chat.questions(ctx) : [],
    ])
    const next = page.next ?? null
    return {
      body: { questions: page.questions.map(questionRecord), chats: chats.map(one => chatRecord(one, ctx)), next_cursor: next },
    }
  },
})

const sourceReply = ({ info, text: source, format, version, writable }: WorkflowText): RouteReply => ({
  body: {
    name: info.name,
    source: info.source,
    format,
    text: source ?? null,
    version,
    writable,
    problems: (info.problems ?? []).map(problemRecord),
  },
  headers: { ...(version === '' ? {} : { ETag: `"${version}"` }), 'Cache-Control': 'no-cache' },
})

const drawnRecord = ({ id, name, type, ways, bodies }: DrawnNode, state: GraphState): { [key: string]: Json } => ({
  id,
  name,
  type,
  status: state.get(id) ?? null,
  edges: ways.map(({ to, label, kind }) => ({ to, label: label ?? null, kind })),
  bodies: bodies.map(body => ({ name: body.name, nodes: body.nodes.map(node => drawnRecord(node, state)) })),
})

const nodeRecords = (nodes: SlotView<WorkflowNode>) =>
  nodes
    .entries()
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([type, { description, settings, output, branches, body, vars, repeatable }]) => ({
      type,
      description,
      plugin: nodes.owner(type) ?? null,
      settings,
      output: output ?? null,
      branches: branches ?? null,
      body: body ?? null,
      vars: vars ?? {},
      repeatable,
    }))

const questionRecord = ({ run, workflow, owner, waiting: { step, node, since, until, ask } }: RunQuestion) => ({
  workflow_id: run,
  workflow,
  owner,
  step,
  node,
  kind: ask.kind,
  message: ask.message,
  choices: ask.choices ? [...ask.choices] : null,
  schema: ask.schema ?? null,
  since: timeRecord(since),
  until: timeRecord(until),
  answer_url: `${PATH}/${run}/answer`,
})

/** A question of a direct call of a tool has no conversation, and its own route for answers. */
const chatRecord = ({ conversationId, form, requests, ...question }: ChatQuestion, { principal }: CallContext) => ({
  request_id: question.requestId,
  call_id: question.callId,
  conversation_id: conversationId === '' ? null : conversationId,
  owner: question.owner,
  tool: question.tool,
  arguments: question.arguments,
  question: question.question,
  form: form ?? null,
  requests: requests ?? null,
  since: timeRecord(question.since),
  until: timeRecord(question.until),
  turn_id: question.turnId ?? null,
  interrupted: question.interrupted ?? false,
  answerable: question.owner === principal.id,
  answer_url:
    question.callId.startsWith('call_') && conversationId === ''
      ? `/api/v1/tools/${encodeURIComponent(question.tool)}/answer`
      : '/api/v1/chat/answer',
})
