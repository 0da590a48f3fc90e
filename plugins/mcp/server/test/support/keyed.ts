import { Routes } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { type HostSetup, startMcpHost, type Said } from './host.ts'

/** The key of `keyed`. */
export const KEY = 'k3y-of-the-tools.0123456789abcdef'

/** The paths of the tool server, as a client asks for them. */
export const PATHS = ['/tools', '/tools/echo', '/tools/echo/call', '/mcp', '/mcp/set'] as const
export const plain = (value: string) => ({ 'x-api-key': value })
export const bearer = (value: string) => ({ authorization: `Bearer ${value}` })

/** Where others are served: a route without a scope, and one of another scope. */
const others = [
  item(Routes, 'free', { method: 'GET', path: '/free', summary: 'Free', handle: async () => ({ text: 'free' }) }),
  item(Routes, 'mine', {
    method: 'GET',
    path: '/mine',
    summary: 'Mine',
    scope: 'read',
    handle: async (_request, { principal }) => ({ body: principal }),
  }),
]

/** A host whose key is in the environment while it starts. */
export async function keyed(setup: HostSetup = {}, key: string | undefined = KEY) {
  if (key !== undefined) process.env.SVC_MCP_TEST_KEY = key
  try {
    const { auth, ...mcp } = { auth: {}, ...setup.mcp } as { auth: object }
    return await startMcpHost({
      ...setup,
      give: [...others, ...(setup.give ?? [])],
      mcp: { sets: { set: ['*'] }, ...mcp, auth: { api_key_env: 'SVC_MCP_TEST_KEY', ...auth } },
    })
  } finally {
    delete process.env.SVC_MCP_TEST_KEY
  }
}

/** Asks for a path of the tool server as its clients do. */
export const asked = (
  awaited: Awaited<ReturnType<typeof keyed>>,
  path: string,
  headers: Readonly<Record<string, string>> = {}
): Promise<Said> =>
  path.startsWith('/mcp') || path.endsWith('/call')
    ? awaited.ask.post(path, path.startsWith('/mcp') ? PING : { arguments: { text: 'hi' } }, { ...MCP_HEADERS, ...headers })
    : awaited.ask.get(path, headers)
const PING = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
const MCP_HEADERS = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' }

/** Whether a request came as far as what answers it. */
export const came = ({ status }: Said) => ![401, 403, 429].includes(status)
