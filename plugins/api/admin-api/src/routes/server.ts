import { etag, BOOLEAN, INTEGER, list, nullable, object, ok, STRING, text, words } from '@svc/api-types'
import { type JsonSchema, svcError } from '@svc/core'
import type {
  ConfigProblem,
  ConfigSource,
  ConfigState,
  Configuration,
  ConfigValue,
  Json,
  Route,
  ServerControl,
} from '@svc/core/contracts'
import { expectedVersion } from '../conditional.ts'
import { HINT, RELOAD_HINT } from '../records.ts'
import type { Publish } from '@svc/plugin-kit'

const PATH = '/api/v1/config'
/** Characters of a draft as text. */
const LONGEST_TEXT = 65_536
const IN_FORCE = 'The change takes effect with the next reload: POST /api/v1/reload.'

export const PROBLEM: JsonSchema = {
  ...(object({
    code: STRING,
    message: STRING,
    path: { ...(nullable('string') as object), description: 'The key, such as server.port.' },
    where: { ...(nullable('string') as object), description: 'Name and line of the file, or the variable.' },
    hint: nullable('string'),
    plugin: nullable('string'),
  }) as object),
  title: 'ConfigProblem',
}
const SOURCE = object({
  kind: words('default', 'installed', 'home', 'file', 'environment', 'flags'),
  name: {
    ...(nullable('string') as object),
    description: 'The file, from the svc home or the working folder, or the variable.',
  },
})
const VALUE: JsonSchema = {
  ...(object({
    key: { ...(STRING as object), description: 'The keys with dots.' },
    keys: list(STRING),
    value: { description: 'A secret is `(secret)`.' },
    source: SOURCE,
    unused: { ...(BOOLEAN as object), description: 'No running plugin uses it.' },
    local: { ...(nullable('string') as object), description: 'Reason why you cannot change it over HTTP; null if you can.' },
    in_file: {
      ...(BOOLEAN as object),
      description: 'Whether svc.config.yaml of the svc home sets it, even if a source of higher priority overrides that.',
    },
  }) as object),
  title: 'ConfigValue',
}
const STATE: JsonSchema = {
  ...(object({
    values: list(VALUE),
    plugins: list(object({ name: STRING, source: SOURCE })),
    file: {
      ...(object({
        version: { ...(STRING as object), description: 'Also the ETag.' },
        is_pending: {
          ...(BOOLEAN as object),
          description: 'Whether the file has changes that take effect with the next reload.',
        },
        locked: { ...(nullable('string') as object), description: 'Reason why you cannot change it over HTTP; null if you can.' },
      }) as object),
      description: 'svc.config.yaml of the svc home.',
    },
  }) as object),
  title: 'Config',
}
const UNCHECKED: JsonSchema = {
  ...(list(STRING) as object),
  description: 'What the check cannot know before a start, in words.',
}
const VALUES: JsonSchema = {
  type: 'object',
  description:
    'The keys to change, as a JSON Merge Patch (RFC 7396): `{"server": {"port": 9000}, "log": null}`. null removes a key.',
}

interface ServerServices {
  readonly control?: ServerControl | undefined
  readonly configuration?: Configuration | undefined
}

/** Routes for the server itself: its reload and its configuration. A host without a supervisor has none of them. */
export const createServerRoutes = ({ control, configuration }: ServerServices, publish: Publish): Record<string, Route> => ({
  ...(control ? { reload: reloadRoute(control, publish) } : {}),
  ...(configuration ? { ...readRoutes(configuration), ...draftRoutes(configuration, publish) } : {}),
})

const reloadRoute = (control: ServerControl, publish: Publish): Route => ({
  method: 'POST',
  path: '/api/v1/reload',
  summary: 'Start new workers from the current files and drain the old ones',
  description: 'Does the same as `svc reload`. If the new workers fail to start, the old ones keep serving.',
  scope: 'admin',
  responses: {
    ...ok(
      'The new workers serve.',
      object({
        reloaded: { ...(BOOLEAN as object), description: 'Always true.' },
        problems: { ...(list(PROBLEM) as object), description: 'Always empty.' },
        workers: list(object({ name: STRING, state: words('starting', 'ready', 'draining'), generation: INTEGER })),
      })
    ),
    '409': {
      description: 'CONFLICT: the new workers failed to start, and the old ones keep serving. details.problems says why.',
      schema: object({
        success: BOOLEAN,
        error: STRING,
        error_code: STRING,
        details: object({ reason: STRING, problems: list(PROBLEM) }),
      }),
    },
  },
  async handle(_request, ctx) {
    // before: this worker ends after a reload
    publish({ type: 'reload_requested', subject: 'server', after: {} }, ctx)
    const { problems, workers } = await control.reload(ctx)
    if (problems.length > 0) throw reloadFailed(problems)
    const shown = workers.map(({ name, state, generation }) => ({ name, state, generation }))
    return { body: { reloaded: true, problems: [], workers: shown } }
  },
})

const reloadFailed = (problems: readonly ConfigProblem[]) => {
  const reason = 'the new workers failed to start'
  return svcError('CONFLICT', `${reason}, so the old ones keep serving: ${problems[0]?.message}`, {
    details: { reason, problems: problems.map(problemRecord) },
    hint: 'Correct the problems, then reload again',
  })
}

const readRoutes = (configuration: Configuration): Record<string, Route> => ({
  config: {
    method: 'GET',
    path: PATH,
    summary: 'Read the configuration in effect with the source of each key',
    scope: 'read',
    query: object({ key: text('Only this key and the keys below it, such as server.') }, []),
    responses: ok('The configuration. Its ETag is the version of the file of the svc home.', STATE),
    async handle({ query: { key } }, ctx) {
      const state = await configuration.read(ctx)
      return { headers: etag(state.file.version), body: stateRecord(state, key) }
    },
  },
  config_schema: {
    method: 'GET',
    path: `${PATH}/schema`,
    summary: 'Read the JSON Schema of the configuration',
    scope: 'read',
    responses: ok('The schema (draft 07) of everything that the loaded plugins accept.', { type: 'object' }),
    handle: async (_request, ctx) => ({ body: await configuration.schema(ctx) }),
  },
})

const draftRoutes = (configuration: Configuration, publish: Publish): Record<string, Route> => ({
  config_check: {
    method: 'POST',
    path: `${PATH}/check`,
    summary: 'Check a draft of svc.config.yaml of the svc home',
    description:
      'As `svc config check`: the plugins check the draft, too. Give either `values` or `text`. Nothing of the draft is stored, executed or imported.',
    scope: 'admin',
    body: {
      ...(object(
        {
          values: VALUES,
          text: { type: 'string', maxLength: LONGEST_TEXT, description: 'The whole file as YAML.' },
        },
        []
      ) as object),
      additionalProperties: false,
      minProperties: 1,
      maxProperties: 1,
    },
    responses: ok(
      'The problems of the draft, and what only a start can show.',
      object({ ok: BOOLEAN, problems: list(PROBLEM), unchecked: UNCHECKED })
    ),
    async handle({ body }, ctx) {
      const { problems, unchecked } = await configuration.check(body as unknown as Parameters<Configuration['check']>[0], ctx)
      return { body: { ok: problems.length === 0, problems: problems.map(problemRecord), unchecked } }
    },
  },
  config_change: {
    method: 'PATCH',
    conditional: true,
    path: PATH,
    summary: 'Change svc.config.yaml of the svc home',
    description: `Needs If-Match with the ETag of GET ${PATH}. Comments and other keys of the file stay. Keys that name code, commands, folders, variables, plugins or credentials are refused, as are keys that a source of higher priority sets: these you can only remove. ${IN_FORCE}`,
    scope: 'admin',
    body: { ...(object({ values: VALUES }) as object), additionalProperties: false },
    responses: ok(
      'The file is changed.',
      object({
        version: STRING,
        changed: list(object({ key: STRING, before: {}, after: {} })),
        reload_required: { ...(BOOLEAN as object), description: IN_FORCE },
        hint: HINT,
        unchecked: UNCHECKED,
      })
    ),
    async handle(request, ctx) {
      const { values } = request.body as { readonly values: { readonly [key: string]: Json } }
      const { version, changed, unchecked } = await configuration.change(values, expectedVersion(request), ctx)
      const side = (which: 'before' | 'after') => Object.fromEntries(changed.map(change => [change.key, change[which]]))
      if (changed.length > 0)
        publish({ type: 'config_file_changed', subject: 'config', before: side('before'), after: side('after') }, ctx)
      const shown = changed.map(({ key, before, after }) => ({ key, before, after }))
      const isRequired = changed.length > 0
      const hint = isRequired ? RELOAD_HINT : null
      return { headers: etag(version), body: { version, changed: shown, reload_required: isRequired, hint, unchecked } }
    },
  },
})

export const problemRecord = ({ code, message, path, where, hint, plugin }: ConfigProblem) => ({
  code,
  message,
  path: path ?? null,
  where: where ?? null,
  hint: hint ?? null,
  plugin: plugin ?? null,
})

const sourceRecord = ({ kind, name }: ConfigSource) => ({ kind, name: name ?? null })

const valueRecord = ({ keys, value, source, unused, local, inFile }: ConfigValue) => ({
  key: keys.join('.'),
  keys,
  value,
  source: sourceRecord(source),
  unused,
  local: local ?? null,
  in_file: inFile,
})

function stateRecord({ values, plugins, file }: ConfigState, key: string | undefined) {
  const asked = ({ keys }: ConfigValue) => key === undefined || `${keys.join('.')}.`.startsWith(`${key}.`)
  return {
    values: values.filter(asked).map(valueRecord),
    plugins:
      key === undefined || key === 'plugins' ? plugins.map(({ name, source }) => ({ name, source: sourceRecord(source) })) : [],
    file: { version: file.version, is_pending: file.isPending, locked: file.locked ?? null },
  }
}
