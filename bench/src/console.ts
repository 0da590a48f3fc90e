import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { openBrowser, openConsole } from '../../test/console/support/browser.ts'
import { middle } from './load.ts'
import type { Options } from './options.ts'
import { freePort } from './processes.ts'
import type { Figure } from './report.ts'
import { interleave } from './rounds.ts'
import { type Server, start } from './server.ts'
import { scratch, svcServe } from './svc.ts'

const [MESSAGES, OPEN_MESSAGES, NODES] = [10_000, 2_000, 500]
/** A reply of more than a minute, in paragraphs: "go go … go". A token every 3 ms is 333 a second, less what the timers take. */
const [PARAGRAPHS, WORDS, PACE_MS] = [500, 50, 3]
const TOKENS_PER_SECOND = 256
const REPLY = Array.from({ length: PARAGRAPHS }, () => Array.from({ length: WORDS }, () => 'go').join(' ')).join('\n\n')
/** A model that says the whole of it. */
const MODELS = [{ id: 'local-1', context: 1_048_576, output: 65_536 }]
/** The words of the last message in the page. */
const SHOWN = `[...document.querySelectorAll('.message-assistant')].at(-1).textContent.split('go').length`
const MINUTE_MS = 60_000
const FRAMES = 600

/** So many nodes stand side by side, so that all of them fit into a window. */
const COLUMNS = 20

/** A workflow of 500 nodes in columns that run at the same time, half of which wait for a moment. */
const GRAPH = `name: moving
nodes:
  all:
    type: parallel
    bodies:
${Array.from({ length: COLUMNS }, (_, column) => `      c${column}:\n        nodes:\n${columnOf(NODES / COLUMNS)}`).join('\n')}
`

function columnOf(nodes: number): string {
  const lines = Array.from({ length: nodes }, (_, at) => {
    const what = at % 2 === 0 ? 'type: transform, value: 1' : 'type: wait, for: 1s'
    return `          n${at}: { ${what}${at === nodes - 1 ? '' : `, next: n${at + 1}`} }`
  })
  return lines.join('\n')
}

/** The budgets of the console in Chromium, against a real server. The anchor of each is its limit. */
export async function* consolePages({ svc, rounds }: Options): AsyncGenerator<Figure> {
  yield* costs(svc, rounds)
  using folder = scratch()
  const workflows = join(folder.path, 'home', 'workflows')
  mkdirSync(workflows, { recursive: true })
  writeFileSync(join(workflows, 'moving.yaml'), GRAPH)
  const port = await freePort()
  await using _server = await start(
    svcServe(svc, port, folder.path, { providers: { local: { type: 'local', models: MODELS } } }),
    port
  )
  await using browser = await openBrowser()
  const at = (path: string) => `http://127.0.0.1:${port}/console/${path}`
  yield* usable(browser, at('playground'), rounds)
  // before there is work that ends later, which is an event
  for (const page of ['', 'playground']) yield* idle(browser, at(page), page || 'overview')
  yield* scrolling(browser, at(`conversations?id=${await importMessages(port, MESSAGES)}`))
  yield* graph(browser, port, at)
  yield* streaming(browser, at(`playground?conversation=${await importMessages(port, OPEN_MESSAGES)}`))
}

const against = (what: string, value: number, unit: string, limit: number, better: Figure['better'] = 'less'): Figure => ({
  bench: 'console',
  what,
  value,
  unit,
  anchor: 'the limit',
  anchorValue: limit,
  ratio: value / limit,
  better,
  must: 1,
})

/** What the console costs a server while no page is open. */
async function* costs(svc: Options['svc'], rounds: number): AsyncGenerator<Figure> {
  using folder = scratch()
  const started = async (enabled: boolean, measured: (server: Server) => Promise<number>) => {
    const port = await freePort()
    const config = { plugins: [{ use: '@svc/plugin-console', enabled }] }
    await using server = await start(svcServe(svc, port, folder.path, config), port)
    return await measured(server)
  }
  const startMs = async (server: Server) => server.startMs
  // a start takes a hundred times the limit: only the mean of many shows the difference
  const starts = await interleave({ on: () => started(true, startMs), off: () => started(false, startMs) }, rounds * 10)
  const { value, error } = difference(starts.on, starts.off)
  const note = `standard error ${error.toFixed(1)} ms`
  yield { ...against('start with the console, against one without', value, 'ms more', 5), note }
  const memory = await interleave({ on: () => started(true, ownMiB), off: () => started(false, ownMiB) }, rounds)
  // whether V8 holds 8 MiB for new objects or not yet depends on the moment of its last collection
  const least = Math.min(...memory.on) - Math.min(...memory.off)
  yield against('memory with the console, against a server without', least, 'MiB more', 1)
}

/** The difference of two means, without the slowest tenth of each, and its standard error. */
function difference(ones: readonly number[], others: readonly number[]): { readonly value: number; readonly error: number } {
  const [one, other] = [ones, others].map(values => {
    const kept = values.toSorted((a, b) => a - b).slice(0, Math.ceil(values.length * 0.9))
    const mean = kept.reduce((all, value) => all + value, 0) / kept.length
    const variance = kept.reduce((all, value) => all + (value - mean) ** 2, 0) / (kept.length - 1)
    return { mean, error: variance / kept.length }
  }) as [Mean, Mean]
  return { value: one.mean - other.mean, error: Math.sqrt(one.error + other.error) }
}

interface Mean {
  readonly mean: number
  /** The square of its standard error. */
  readonly error: number
}

/** Memory that only the processes of the server have, a moment after the start. Files that they share with others are not in it. */
async function ownMiB({ pids }: Server): Promise<number> {
  await wait(2_000)
  const kiB = pids.map(pid => Number(/^Private_Dirty: +(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]))
  return kiB.reduce((all, one) => all + one, 0) / 1024
}

async function* usable(browser: Browser, url: string, rounds: number): AsyncGenerator<Figure> {
  const times: number[] = []
  for (let at = 0; at < rounds; at++) {
    const began = performance.now()
    await using view = await openConsole(browser, url)
    await view.page.getByLabel('Message', { exact: true }).fill('x')
    times.push(performance.now() - began)
  }
  yield against('a page is usable, nothing in the cache', middle(times), 'ms', 1_500)
}

/** Starts to note the long tasks of a page, which are those above 50 ms. */
const WATCH = `window.tasks = []; new PerformanceObserver(list => { for (const one of list.getEntries()) window.tasks.push(one.duration) }).observe({ type: 'longtask' })`

async function longest(page: Page): Promise<{ readonly ms: number; readonly note: string }> {
  const tasks = await page.evaluate<readonly number[]>('window.tasks')
  return { ms: Math.max(0, ...tasks), note: `${tasks.length} tasks above 50 ms` }
}

async function* scrolling(browser: Browser, url: string): AsyncGenerator<Figure> {
  await using view = await openConsole(browser, url)
  const { page } = view
  await page.getByText('question 0', { exact: true }).last().waitFor()
  // the policy of the page allows no `waitForFunction`
  while ((await page.evaluate<number>(`document.querySelector('.reader-scroll').scrollHeight`)) < MESSAGES * 60) await wait(100)
  await wait(1_000)
  await page.evaluate(WATCH)
  await page.evaluate(`(async () => {
    const box = document.querySelector('.reader-scroll')
    const step = (box.scrollHeight - box.clientHeight) / ${FRAMES}
    for (let at = 0; at < ${FRAMES}; at++) {
      box.scrollTop += step
      await new Promise(resolve => requestAnimationFrame(resolve))
    }
  })()`)
  const { ms, note } = await longest(page)
  yield { ...against(`${MESSAGES.toLocaleString('en')} messages scroll, the longest task`, ms, 'ms', 50), note }
}

async function* streaming(browser: Browser, url: string): AsyncGenerator<Figure> {
  await using view = await openConsole(browser, url)
  const { page } = view
  // the messages of before are there
  await page.getByText(`question ${OPEN_MESSAGES / 2 - 1}`, { exact: true }).waitFor()
  const height = await page.evaluate<number>("document.querySelector('.transcript .reader-list').clientHeight")
  if (height < OPEN_MESSAGES * 40) throw new Error(`the page shows fewer than ${OPEN_MESSAGES} messages: ${height} px`)
  await page.getByLabel('Message', { exact: true }).focus()
  // typing that much would take the browser minutes
  await page.evaluate(`(() => {
    const box = document.getElementById('message')
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(box, ${JSON.stringify(`/pace ${PACE_MS}\n${REPLY}`)})
    box.dispatchEvent(new Event('input', { bubbles: true }))
  })()`)
  await wait(2_000)
  await page.keyboard.press('Enter')
  await page.locator('.message-assistant').last().getByText('go go').first().waitFor()
  await page.evaluate(WATCH)
  const [before, began] = [await page.evaluate<number>(SHOWN), performance.now()]
  await wait(MINUTE_MS)
  const words = (await page.evaluate<number>(SHOWN)) - before
  const rate = (words * 1_000) / (performance.now() - began)
  const { ms, note } = await longest(page)
  const what = `a minute of a stream into ${OPEN_MESSAGES.toLocaleString('en')} messages`
  yield { ...against(`${what}, the longest task`, ms, 'ms', 50), note }
  yield against(`${what}, shown`, rate, 'tokens a second', TOKENS_PER_SECOND, 'more')
}

/** Nodes of the graph that are in its window. */
const DRAWN = `(() => {
  const view = document.querySelector('.react-flow').getBoundingClientRect()
  return [...document.querySelectorAll('.node')].filter(node => {
    const { left, right, top, bottom } = node.getBoundingClientRect()
    return right > view.left && left < view.right && bottom > view.top && top < view.bottom
  }).length
})()`

async function* graph(browser: Browser, port: number, at: (path: string) => string): AsyncGenerator<Figure> {
  const { workflow_id: id } = await ask<{ workflow_id: string }>(port, '/api/v1/workflows/run', { workflow: 'moving', input: {} })
  await using view = await openConsole(browser, at(`runs?id=${id}`))
  const { page } = view
  await page.locator('.node').first().waitFor()
  const drawn = await page.evaluate<number>(DRAWN)
  const box = (await page.locator('.react-flow').first().boundingBox())!
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
  await page.evaluate(`window.drawn = 0; (function count() { window.drawn += 1; requestAnimationFrame(count) })()`)
  await page.mouse.move(x, y)
  await page.mouse.down()
  const began = performance.now()
  const first = await page.evaluate<number>('window.drawn')
  for (let step = 0; performance.now() - began < 5_000; step++)
    await page.mouse.move(x + 40 * Math.sin(step / 5), y + 40 * Math.cos(step / 5))
  const shown = (await page.evaluate<number>('window.drawn')) - first
  const rate = (shown * 1_000) / (performance.now() - began)
  await page.mouse.up()
  yield {
    ...against(`${NODES} nodes of a run that are moved`, rate, 'frames a second', 30, 'more'),
    note: `${await page.evaluate<number>(DRAWN)} of them in the window`,
  }
  yield against('nodes of a run that are drawn at once', drawn, 'nodes', NODES, 'more')
}

async function* idle(browser: Browser, url: string, name: string): AsyncGenerator<Figure> {
  await using view = await openConsole(browser, url)
  await wait(10_000)
  const before = view.requests.length
  await wait(MINUTE_MS)
  const asked = view.requests.slice(before)
  yield { ...against(`requests of an idle page in a minute, ${name}`, asked.length, 'requests', 1), note: asked.join(', ') }
}

async function importMessages(port: number, count: number): Promise<string> {
  const messages = Array.from({ length: count / 2 }, (_, at) => [
    { role: 'user', content: `question ${at}` },
    { role: 'assistant', content: `answer **${at}**` },
  ]).flat()
  const { conversations } = await ask<{ conversations: readonly { conversation_id: string }[] }>(
    port,
    '/api/v1/conversations/import',
    { format: 'chat_completions', content: JSON.stringify({ messages }) }
  )
  return conversations[0]!.conversation_id
}

async function ask<T>(port: number, path: string, body: object): Promise<T> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`${answer.status} of ${path}: ${await answer.text()}`)
  return (await answer.json()) as T
}
