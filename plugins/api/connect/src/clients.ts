import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { isTree } from '@svc/core'
import { type ConfigFile, type Tree, valueAt } from './config-file.ts'
import type { Setting } from './formats.ts'

/** What a client is to use. */
export interface Connection {
  /** Address of the server, without a slash at its end. */
  readonly url: string
  readonly model: ServedModel
  /** Name of the environment variable with the key. */
  readonly keyEnv: string
}

export interface ServedModel {
  readonly id: string
  /** A provider can accept other models than those that it lists. */
  readonly isListed: boolean
  readonly context?: number
  readonly output?: number
}

type Env = Readonly<Record<string, string | undefined>>

/** A client that `svc connect` configures. */
export interface Client {
  readonly title: string
  /** A path of the server that it calls. */
  readonly path: string
  files(connection: Connection, env: Env): readonly ConfigFile[]
  /** Its variables, as words of a shell. */
  variables?(connection: Connection): Readonly<Record<string, string>>
  readonly note?: string
}

/** Name of the entry in the files of clients. Values of an entry of this name are from an earlier run. */
const NAME = 'svc'

const CHAT = '/v1/chat/completions'

const folder = (env: Env, variable: string, ...path: string[]): string => env[variable] || join(homedir(), ...path)

/** The model of a client that has `provider/model` as one name. */
const isOurModel = (model: unknown) => typeof model === 'string' && model.startsWith(`${NAME}/`)

/** A setting for each value in an object, so that other values in it stay. */
const leaves = (keys: readonly string[], value: unknown, isOurs: boolean): Setting[] =>
  isTree(value) ? Object.entries(value).flatMap(([key, one]) => leaves([...keys, key], one, isOurs)) : [{ keys, value, isOurs }]

/** For a client that reads the key only from a variable of its own. */
const copyOf = (keyEnv: string, name: string): Readonly<Record<string, string>> =>
  keyEnv === name ? {} : { [name]: `"$${keyEnv}"` }

/** The place of our entry in a list, or the place after its end. */
function placeIn(list: unknown): number {
  if (!Array.isArray(list)) return 0
  const at = list.findIndex(one => valueAt(one, ['name']) === NAME)
  return at < 0 ? list.length : at
}

const codex: Client = {
  title: 'Codex',
  path: '/v1/responses',
  files: ({ url, model, keyEnv }, env) => [
    {
      path: join(folder(env, 'CODEX_HOME', '.codex'), 'config.toml'),
      format: 'toml',
      settings(tree) {
        const isOurs = tree.model_provider === NAME
        const old = valueAt(tree, ['model_providers', NAME])
        const provider = { name: NAME, base_url: `${url}/v1`, env_key: keyEnv, wire_api: 'responses' }
        return [
          { keys: ['model_provider'], value: NAME },
          { keys: ['model'], value: model.id, isOurs },
          { keys: ['model_providers', NAME], value: isTree(old) ? { ...old, ...provider } : provider, isOurs: isTree(old) },
        ]
      },
    },
  ],
}

/** Claude Code asks this program for the key, so that its settings contain no key. */
const KEY_HELPER = /^printenv [A-Za-z_]\w*$/

const claudeCode: Client = {
  title: 'Claude Code',
  path: '/v1/messages',
  files: ({ url, model: { id }, keyEnv }, env) => [
    {
      path: join(folder(env, 'CLAUDE_CONFIG_DIR', '.claude'), 'settings.json'),
      format: 'json',
      settings(tree) {
        const isOurs = typeof tree.apiKeyHelper === 'string' && KEY_HELPER.test(tree.apiKeyHelper)
        return [
          ...leaves(
            ['env'],
            {
              ANTHROPIC_BASE_URL: url,
              ANTHROPIC_MODEL: id,
              ANTHROPIC_DEFAULT_OPUS_MODEL: id,
              ANTHROPIC_DEFAULT_SONNET_MODEL: id,
              ANTHROPIC_DEFAULT_HAIKU_MODEL: id,
            },
            isOurs
          ),
          { keys: ['apiKeyHelper'], value: `printenv ${keyEnv}`, isOurs },
        ]
      },
    },
  ],
}

/** opencode reads both, and prefers the second. */
function opencodeFile(home: string): string {
  const [json, jsonc] = [join(home, 'opencode.json'), join(home, 'opencode.jsonc')]
  return existsSync(jsonc) && !existsSync(json) ? jsonc : json
}

const opencode: Client = {
  title: 'opencode',
  path: CHAT,
  files: ({ url, model: { id, context, output }, keyEnv }, env) => [
    {
      path: opencodeFile(join(folder(env, 'XDG_CONFIG_HOME', '.config'), 'opencode')),
      format: 'json',
      settings: tree => [
        { keys: ['$schema'], value: 'https://opencode.ai/config.json', isDefault: true },
        ...leaves(
          ['provider', NAME],
          {
            npm: '@ai-sdk/openai-compatible',
            name: NAME,
            options: { baseURL: `${url}/v1`, apiKey: `{env:${keyEnv}}` },
            models: { [id]: { name: id, ...(context && output ? { limit: { context, output } } : {}) } },
          },
          true
        ),
        { keys: ['model'], value: `${NAME}/${id}`, isOurs: isOurModel(tree.model) },
        { keys: ['small_model'], value: `${NAME}/${id}`, isOurs: isOurModel(tree.small_model) },
      ],
    },
  ],
}

const CLINE_PROVIDER = 'openai-compatible'

const cline: Client = {
  title: 'Cline',
  path: CHAT,
  files: ({ url, model }, env) => [
    {
      path: join(folder(env, 'CLINE_DATA_DIR', '.cline', 'data'), 'settings', 'providers.json'),
      format: 'json',
      settings(tree) {
        const entry = ['providers', CLINE_PROVIDER]
        const baseUrl = `${url}/v1`
        const isOurs = valueAt(tree, [...entry, 'settings', 'baseUrl']) === baseUrl
        return [
          { keys: ['version'], value: 1, isDefault: true },
          { keys: ['modes'], value: {}, isDefault: true },
          { keys: ['lastUsedProvider'], value: CLINE_PROVIDER, isOurs: true },
          ...leaves([...entry, 'settings'], { provider: CLINE_PROVIDER, baseUrl, model: model.id }, isOurs),
          { keys: [...entry, 'updatedAt'], value: new Date().toISOString(), isDefault: true },
          { keys: [...entry, 'tokenSource'], value: 'manual', isDefault: true },
        ]
      },
    },
  ],
  variables: ({ keyEnv }) => copyOf(keyEnv, 'OPENAI_API_KEY'),
}

const continueDev: Client = {
  title: 'Continue',
  path: CHAT,
  files: ({ url, model: { id, context, output }, keyEnv }, env) => [
    {
      path: join(folder(env, 'CONTINUE_GLOBAL_DIR', '.continue'), 'config.yaml'),
      format: 'yaml',
      settings: tree => [
        { keys: ['name'], value: NAME, isDefault: true },
        { keys: ['version'], value: '1.0.0', isDefault: true },
        { keys: ['schema'], value: 'v1', isDefault: true },
        {
          keys: ['models', placeIn(tree.models)],
          value: {
            name: NAME,
            provider: 'openai',
            model: id,
            apiBase: `${url}/v1`,
            apiKey: `\${{ secrets.${keyEnv} }}`,
            roles: ['chat', 'edit', 'apply'],
            ...(context && output ? { defaultCompletionOptions: { contextLength: context, maxTokens: output } } : {}),
          },
          isOurs: true,
        },
      ],
    },
  ],
  note: 'if the file has other models, choose "svc" with /model',
}

const pi: Client = {
  title: 'pi',
  path: CHAT,
  files: ({ url, model: { id, context, output }, keyEnv }, env) => {
    const home = folder(env, 'PI_CODING_AGENT_DIR', '.pi', 'agent')
    const model = { id, ...(context ? { contextWindow: context } : {}), ...(output ? { maxTokens: output } : {}) }
    return [
      {
        path: join(home, 'models.json'),
        format: 'json',
        settings: tree => [
          ...leaves(['providers', NAME], { baseUrl: `${url}/v1`, api: 'openai-completions', apiKey: keyEnv }, true),
          { keys: ['providers', NAME, 'models', modelPlace(tree, id)], value: model, isOurs: true },
        ],
      },
      {
        path: join(home, 'settings.json'),
        format: 'json',
        settings: tree => [
          { keys: ['defaultProvider'], value: NAME },
          { keys: ['defaultModel'], value: id, isOurs: tree.defaultProvider === NAME },
        ],
      },
    ]
  },
}

function modelPlace(tree: Tree, id: string): number {
  const models = valueAt(tree, ['providers', NAME, 'models'])
  if (!Array.isArray(models)) return 0
  const at = models.findIndex(one => valueAt(one, ['id']) === id)
  return at < 0 ? models.length : at
}

const qwen: Client = {
  title: 'Qwen Code',
  path: CHAT,
  files: ({ url, model: { id }, keyEnv }) => [
    {
      path: join(homedir(), '.qwen', 'settings.json'),
      format: 'json',
      settings(tree) {
        const list = valueAt(tree, ['modelProviders', 'openai'])
        const place = placeIn(list)
        const old = valueAt(list, [place, 'id'])
        return [
          {
            keys: ['modelProviders', 'openai', place],
            value: { id, name: NAME, baseUrl: `${url}/v1`, envKey: keyEnv },
            isOurs: true,
          },
          { keys: ['security', 'auth', 'selectedType'], value: 'openai' },
          {
            keys: ['model', 'name'],
            value: id,
            isOurs: old !== undefined && old === valueAt(tree, ['model', 'name']),
          },
        ]
      },
    },
  ],
}

const gemini: Client = {
  title: 'Gemini CLI',
  path: '/v1beta/models',
  files: ({ model: { id } }) => [
    {
      path: join(homedir(), '.gemini', 'settings.json'),
      format: 'json',
      settings: () => [
        { keys: ['security', 'auth', 'selectedType'], value: 'gemini-api-key' },
        { keys: ['model', 'name'], value: id },
      ],
    },
  ],
  variables: ({ url, keyEnv }) => ({
    GOOGLE_GEMINI_BASE_URL: `'${url.replaceAll("'", String.raw`'\''`)}'`,
    ...copyOf(keyEnv, 'GEMINI_API_KEY'),
  }),
}

/** The clients by the names of their commands. */
export const CLIENTS = {
  codex,
  'claude-code': claudeCode,
  opencode,
  cline,
  continue: continueDev,
  pi,
  qwen,
  gemini,
} as const satisfies Readonly<Record<string, Client>>

export type ClientName = keyof typeof CLIENTS
