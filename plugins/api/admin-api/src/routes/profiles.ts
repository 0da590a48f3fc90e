import { etag, BOOLEAN, list, nullable, NUMBER, object, ok, STRING, text } from '@svc/api-types'
import type { JsonSchema } from '@svc/core'
import type { Profile, ProfileFile, ProfilesState, Route } from '@svc/core/contracts'
import { expectedVersion } from '../conditional.ts'
import { HINT, RELOAD_HINT } from '../records.ts'
import type { Publish } from '@svc/plugin-kit'
import { PROBLEM, problemRecord } from './server.ts'

const PATH = '/api/v1/profiles/:name'
const FILE = '/api/v1/config/profiles'
const [LONGEST_NAME, LONGEST_PROMPT, MOST_TOOLS, MOST_FALLBACKS] = [200, 100_000, 1_000, 50]
const IN_FORCE = 'The change takes effect with the next reload: POST /api/v1/reload.'

const name = (description: string): JsonSchema => ({ ...(text(description) as object), maxLength: LONGEST_NAME })
const CANDIDATE = {
  ...(object(
    {
      provider: name('A provider.'),
      model: name('One of its models.'),
      weight: { type: 'number', exclusiveMinimum: 0, description: 'Its share of the turns; default 1.' },
    },
    ['provider', 'model']
  ) as object),
  additionalProperties: false,
}
const SETTINGS = {
  description: { type: 'string', maxLength: 1_000, description: 'Description shown in lists.' },
  provider: name('The provider.'),
  model: name('The model.'),
  temperature: { type: 'number', minimum: 0, maximum: 1, description: 'The temperature.' },
  max_tokens: { type: 'integer', minimum: 1, description: 'Maximum tokens in the reply.' },
  system_prompt: { type: 'string', maxLength: LONGEST_PROMPT, description: 'The system prompt.' },
  mode: name('The mode.'),
  tools: {
    type: 'array',
    maxItems: MOST_TOOLS,
    items: name('A tool.'),
    description: 'Tools of a turn. Default: all of the mode.',
  },
  fallback: { type: 'array', maxItems: MOST_FALLBACKS, items: CANDIDATE, description: 'Further models, in order.' },
} as const satisfies Record<string, JsonSchema>
const BODY = { ...(object(SETTINGS, []) as object), additionalProperties: false }

const PROFILE: JsonSchema = {
  ...(object({
    name: STRING,
    description: nullable('string'),
    provider: nullable('string'),
    model: nullable('string'),
    temperature: nullable('number'),
    max_tokens: nullable('integer'),
    system_prompt: nullable('string'),
    mode: nullable('string'),
    tools: {
      type: ['array', 'null'],
      items: STRING,
      description: 'Tools that the model can call. Null: all tools that the mode allows.',
    },
    fallback: list(object({ provider: STRING, model: STRING, weight: NUMBER }, ['provider', 'model'])),
  }) as object),
  title: 'ProfileSettings',
}
const STATE: JsonSchema = {
  ...(object({
    default: STRING,
    profiles: list(PROFILE),
    version: { ...(STRING as object), description: 'Also the ETag.' },
    is_pending: { ...(BOOLEAN as object), description: 'The file has changes that take effect with the next reload.' },
    locked: { ...(nullable('string') as object), description: 'Why the file cannot be changed over HTTP.' },
  }) as object),
  title: 'ProfilesFile',
}
const CHANGED = object({ version: STRING, reload_required: { ...(BOOLEAN as object), description: IN_FORCE }, hint: HINT })

/** Routes for the profiles file of the svc home. */
export const createProfileRoutes = (file: ProfileFile, publish: Publish): Record<string, Route> => ({
  ...readRoutes(file),
  ...changeRoutes(file, publish),
})

const readRoutes = (file: ProfileFile): Record<string, Route> => ({
  profiles_file: {
    method: 'GET',
    path: FILE,
    summary: 'Read the profiles file of the svc home',
    description: 'GET /api/v1/profiles lists the profiles that the server runs with.',
    scope: 'read',
    responses: ok('The profiles. The ETag is the version of the file.', STATE),
    async handle(_request, ctx) {
      const state = await file.read(ctx)
      return { headers: etag(state.version), body: stateRecord(state) }
    },
  },
  profile_check: {
    method: 'POST',
    path: `${PATH}/check`,
    summary: 'Check a draft of a profile',
    description: 'svc stores nothing.',
    scope: 'admin',
    body: BODY,
    responses: ok(
      'The problems, and the providers and tools that are not there at the moment.',
      object({ ok: BOOLEAN, problems: list(PROBLEM), warnings: list(STRING) })
    ),
    async handle({ params, body }, ctx) {
      const { problems, warnings } = await file.check(profileOf(params.name!, body as ProfileBody), ctx)
      return { body: { ok: problems.length === 0, problems: problems.map(problemRecord), warnings } }
    },
  },
})

const changeRoutes = (file: ProfileFile, publish: Publish): Record<string, Route> => ({
  profile_write: {
    method: 'PUT',
    conditional: true,
    path: PATH,
    summary: 'Add or replace a profile in the profiles file',
    description: `Needs If-Match with the ETag of GET ${FILE}. Comments and other profiles stay. ${IN_FORCE}`,
    scope: 'admin',
    body: BODY,
    responses: ok('The file is changed.', CHANGED),
    async handle(request, ctx) {
      const expected = expectedVersion(request)
      const profile = profileOf(request.params.name!, request.body as ProfileBody)
      const before = await named(file, profile.name, ctx)
      const { version } = await file.write(profile, expected, ctx)
      const type = before ? 'profile_changed' : 'profile_added'
      publish(
        { type, subject: `profiles/${profile.name}`, before: before && profileRecord(before), after: profileRecord(profile) },
        ctx
      )
      return { headers: etag(version), body: { version, reload_required: true, hint: RELOAD_HINT } }
    },
  },
  profile_remove: {
    method: 'DELETE',
    conditional: true,
    path: PATH,
    summary: 'Remove a profile from the profiles file',
    description: `Needs If-Match with the ETag of GET ${FILE}. The default profile stays. ${IN_FORCE}`,
    scope: 'admin',
    responses: ok('The file is changed.', CHANGED),
    async handle(request, ctx) {
      const expected = expectedVersion(request)
      const before = await named(file, request.params.name!, ctx)
      const { version } = await file.remove(request.params.name!, expected, ctx)
      if (before) publish({ type: 'profile_removed', subject: `profiles/${before.name}`, before: profileRecord(before) }, ctx)
      return { headers: etag(version), body: { version, reload_required: true, hint: RELOAD_HINT } }
    },
  },
})

const named = async (file: ProfileFile, profile: string, ctx: Parameters<ProfileFile['read']>[0]) =>
  (await file.read(ctx)).profiles.find(item => item.name === profile)

interface ProfileBody extends Omit<Profile, 'name' | 'maxTokens' | 'systemPrompt'> {
  readonly max_tokens?: number
  readonly system_prompt?: string
}

const profileOf = (profile: string, { max_tokens: maxTokens, system_prompt: systemPrompt, ...same }: ProfileBody): Profile => ({
  name: profile,
  ...same,
  ...(maxTokens === undefined ? {} : { maxTokens }),
  ...(systemPrompt === undefined ? {} : { systemPrompt }),
})

const profileRecord = (profile: Profile) => ({
  name: profile.name,
  description: profile.description ?? null,
  provider: profile.provider ?? null,
  model: profile.model ?? null,
  temperature: profile.temperature ?? null,
  max_tokens: profile.maxTokens ?? null,
  system_prompt: profile.systemPrompt ?? null,
  mode: profile.mode ?? null,
  tools: profile.tools ?? null,
  fallback: (profile.fallback ?? []).map(({ provider, model, weight }) => ({
    provider,
    model,
    ...(weight === undefined ? {} : { weight }),
  })),
})

const stateRecord = ({ default: first, profiles, version, isPending, locked }: ProfilesState) => ({
  default: first,
  profiles: profiles.map(profileRecord),
  version,
  is_pending: isPending,
  locked: locked ?? null,
})
