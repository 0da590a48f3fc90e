import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConfigTree, systemContext } from '@svc/core'
import { Http } from '@svc/core/contracts'
import { type Answerer, type Fixture, openUpstream, testHost } from '@svc/testing'
import { CHAT_PLUGINS, pluginFolder } from '../../../../../test/support/plugin-folder.ts'

const PLUGINS = ['http', 'openai-api', ...CHAT_PLUGINS, 'provider-local', 'provider-openai', 'tools-time']

const PROFILES = `profiles:
  default: {}
  coder: { description: writes code, provider: local, model: local-1, tools: [current_time] }
`

const KEY_ENV = 'SVC_TEST_OPENAI_API_KEY'

export interface ApiOptions {
  /** The server behind the provider `up`, which speaks the same protocol. */
  readonly upstream?: Answerer
  readonly give?: readonly Fixture[]
  readonly config?: ConfigTree
  readonly plugins?: readonly string[]
}

/** JSON of any form. */
export type Tree = ReturnType<typeof JSON.parse>

/** The API before provider-local, and a scripted server of the same protocol. */
export async function startApi({ upstream: by, give = [], config = {}, plugins = [] }: ApiOptions = {}) {
  process.env[KEY_ENV] = 'sk-test-of-the-upstream'
  const upstream = await openUpstream(by ?? ((_, reply) => reply.json(500, {})))
  const home = await mkdtemp(join(tmpdir(), 'svc-openai-api-'))
  const profiles_file = join(home, 'profiles.yaml')
  await writeFile(profiles_file, PROFILES)
  const { server = {}, ...rest } = config as { readonly server?: ConfigTree }
  const host = await testHost([...PLUGINS, ...plugins].map(pluginFolder), {
    give,
    config: {
      server: { port: 0, ...server },
      selection: { profiles_file },
      models: { aliases: { fast: { provider: 'local', model: 'local-small' } } },
      providers: {
        local: {},
        up: { type: 'openai', preset: 'vllm', base_url: `${upstream.url}/v1`, api_key_env: KEY_ENV, models: ['m', 'org/m:1'] },
      },
      ...rest,
    },
  })
  const { url } = (await host.service(Http).address(systemContext(new AbortController().signal)))!
  return {
    host,
    url,
    upstream,
    get: (path: string, headers: Record<string, string> = {}) => reply(fetch(url + path, { headers })),
    post: (path: string, body: unknown, headers: Record<string, string> = {}) => reply(send(url + path, body, headers)),
    /** Asks for a chat completion of local-1. */
    chat: (body: Tree) => reply(send(`${url}/v1/chat/completions`, { model: 'local/local-1', ...body })),
    /** The same as a stream. */
    stream: async (body: Tree) =>
      streamed(await send(`${url}/v1/chat/completions`, { model: 'local/local-1', stream: true, ...body })),
    async [Symbol.asyncDispose]() {
      await host.close()
      await upstream.close()
      await rm(home, { recursive: true })
    },
  }
}

export const send = (url: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

async function reply(response: Promise<Response>) {
  const { status, headers, text } = await response.then(async got => ({
    status: got.status,
    headers: got.headers,
    text: await got.text(),
  }))
  return { status, headers, text, body: (text.startsWith('{') ? JSON.parse(text) : {}) as Tree }
}

/** Reads a stream to its end. `chunks` are its frames; `isDone` whether its last frame says so. */
async function streamed(response: Response) {
  const text = await response.text()
  const lines = text.split('\n\n').filter(frame => frame.startsWith('data: '))
  const isDone = lines.at(-1) === 'data: [DONE]'
  const chunks = (isDone ? lines.slice(0, -1) : lines).map(line => JSON.parse(line.slice('data: '.length)) as Tree)
  const first = chunks.flatMap(({ choices }) => (choices ?? []).filter((choice: Tree) => choice.index === 0)) as Tree[]
  const join = (field: string) => first.map(({ delta }) => delta[field] ?? '').join('')
  return {
    status: response.status,
    headers: response.headers,
    text,
    isDone,
    chunks,
    choices: first,
    content: join('content'),
    join,
  }
}

export const user = (content: unknown) => ({ role: 'user', content })
export const tool = (name: string, more: object = {}) => ({
  type: 'function',
  function: {
    name,
    description: `calls ${name}`,
    parameters: { type: 'object', properties: { a: { type: 'string' } } },
    ...more,
  },
})
export const WEATHER = '/tool get_weather {"city":"Ulm, the town with the highest church"}'
