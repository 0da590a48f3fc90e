import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Frame, Page } from 'playwright-core'
import { until } from '../../support/wait.ts'
import { type AppServers, openAppServers } from './app-servers.ts'
import { type CuratedConsole, openCurated, type SignedIn } from './curated-console.ts'
import { writeFlows } from './flows.ts'

/** A person must allow each call of the tool `careful`. */
const ASKS = `import { definePlugin } from '@svc/core'
import { Chat } from '@svc/core/contracts'
export default definePlugin({
  setup(scope) {
    scope.tap(Chat.hooks.toolCall, ({ tool }) => (tool === 'apps__careful' ? { verdict: 'ask', question: 'May it be careful?' } : undefined))
  },
})
`

async function writeAsking(home: string): Promise<string> {
  const place = join(home, 'asking')
  await mkdir(place)
  const manifest = {
    name: 'svc-plugin-asking',
    version: '1.0.0',
    type: 'module',
    exports: { '.': './index.js', './package.json': './package.json' },
    svc: { api: 1, kind: 'hook', permissions: { hooks: ['chat.toolCall'] } },
  }
  await writeFile(join(place, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(place, 'index.js'), ASKS)
  return place
}

interface OpenApp extends SignedIn {
  readonly frame: Frame
}

/** A server with two MCP servers, a server outside, and a browser. */
export interface Apps extends Omit<CuratedConsole, 'ask' | 'signIn'> {
  readonly servers: AppServers
  readonly signIn: (path: string, scopes?: string) => Promise<SignedIn>
  /** Calls a tool on its page. */
  readonly callTool: (tool: string, scopes?: string) => Promise<SignedIn>
  /** The same, and the frame of the app. */
  readonly openApp: (tool?: string) => Promise<OpenApp>
  /** As a script of that person. With a body, it posts. */
  readonly get: (
    path: string,
    scopes?: string,
    body?: object
  ) => Promise<{ readonly status: number; readonly body: Record<string, unknown> }>
}

/** The states of a call that is over. */
const ENDED = /^(?:completed|the tool failed|failed|cancelled|broken)$/
const ALL = 'read,chat,tools,workflows,admin'

export async function openApps(): Promise<Apps> {
  const ends = new AsyncDisposableStack()
  const servers = ends.use(await openAppServers())
  const curated = ends.use(
    await openCurated(
      async home => {
        await writeFile(join(home, 'mcp.yaml'), servers.yaml)
        await writeFlows(home, { weather: 'name: weather\nnodes:\n  look: { type: tool, name: apps__weather, arguments: {} }\n' })
        return [await writeAsking(home)]
      },
      { providers: { local: {} }, traces: { enabled: true, content: true } }
    )
  )
  const get: Apps['get'] = async (path, scopes = ALL, body) => {
    const response = await curated.ask(`${body ? 'POST' : 'GET'} ${path}`, scopes, body)
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  await until(
    () => get('/api/v1/tools/other__steal'),
    ({ status }) => status === 200
  )
  await until(
    () => get('/api/v1/tools/apps__show'),
    ({ status }) => status === 200
  )
  const signIn: Apps['signIn'] = (path, scopes = ALL) => curated.signIn(path, scopes)
  const callTool: Apps['callTool'] = async (tool, scopes) => {
    const view = await signIn(`tools?id=apps__${tool}`, scopes)
    await view.page.getByRole('button', { name: 'Call the tool' }).click()
    const call = view.page.getByRole('region', { name: 'The call' })
    await call.getByText(ENDED).waitFor()
    expect(await call.innerText()).to.contain('completed')
    return view
  }
  const openApp: Apps['openApp'] = async (tool = 'show') => {
    const view = await callTool(tool)
    return { ...view, frame: await appOf(view.page) }
  }
  return { ...curated, servers, signIn, callTool, openApp, get, [Symbol.asyncDispose]: () => ends.disposeAsync() }
}

/** The frame of the app, when it has started. */
async function appOf(page: Page): Promise<Frame> {
  await page.locator('.frame-place:not(.frame-hidden) iframe').waitFor()
  return (await (await page.locator('iframe').elementHandle())!.contentFrame())!
}
