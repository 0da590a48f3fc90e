import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigTree } from '@svc/core'
import { Http } from '@svc/core/contracts'
import { readEvents, type ServerEvent } from '@svc/provider-http/sse'
import { type Fixture, testContext, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

const PLUGINS = [
  'http',
  'anthropic-api',
  'store-memory',
  'conversations',
  'selection',
  'modes',
  'models',
  'model-calls',
  'chat-policy',
  'chat',
  'named-models',
  'provider-local',
  'tools-time',
]

export type Body = { readonly [field: string]: unknown }

/** What a test configures. */
export interface ApiOptions {
  readonly plugins?: readonly string[]
  readonly config?: ConfigTree
  readonly give?: readonly Fixture[]
  readonly profiles?: object
}

/** A server with the Messages API, the local provider, and more. */
export async function serveApi({ plugins = [], config = {}, give = [], profiles = {} }: ApiOptions = {}) {
  const home = await mkdtemp(join(tmpdir(), 'svc-messages-'))
  const profiles_file = join(home, 'profiles.yaml')
  // JSON is YAML
  await writeFile(profiles_file, JSON.stringify({ profiles: { default: {}, ...profiles } }))
  const { providers, server, ...rest } = config as { providers?: object; server?: object }
  const host = await testHost([...PLUGINS, ...plugins].map(pluginFolder), {
    give,
    config: {
      ...rest,
      server: { port: 0, ...server },
      providers: { local: {}, ...providers },
      selection: { profiles_file },
    },
  })
  const { url } = (await host.service(Http).address(testContext()))!
  const post = (path: string, body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal ? { signal } : {}),
    })
  return {
    url,
    host,
    post,
    /** Asks for a whole message. */
    async ask(body: Body, headers: Record<string, string> = {}) {
      const response = await post('/v1/messages', { model: 'local/local-1', max_tokens: 1000, ...body }, headers)
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, body: parsed(text) }
    },
    /** Asks for a stream, and reads it to its end. */
    async stream(body: Body, headers: Record<string, string> = {}) {
      const response = await post(
        '/v1/messages?beta=true',
        { model: 'local/local-1', max_tokens: 1000, stream: true, ...body },
        headers
      )
      const events: ServerEvent[] = []
      if (response.headers.get('content-type')?.startsWith('text/event-stream'))
        for await (const event of readEvents(response.body as AsyncIterable<Uint8Array>)) events.push(event)
      const body_ = events.length === 0 ? parsed(await response.text()) : undefined
      return {
        status: response.status,
        headers: response.headers,
        events,
        body: body_,
        data: events.map(({ data }) => parsed(data)),
      }
    },
    async [Symbol.asyncDispose]() {
      await host.close()
      await rm(home, { recursive: true })
    },
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- tests read any part of an answer
export type Any = any

const parsed = (text: string): Any => {
  try {
    return JSON.parse(text) as Any
  } catch {
    return undefined
  }
}

export const user = (content: unknown) => ({ role: 'user', content })
export const assistant = (content: unknown) => ({ role: 'assistant', content })
