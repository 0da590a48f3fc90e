import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What the tools of the plugin `finder` answer. `outside` is a server that must not be asked. */
const answersOf = (outside: string) => {
  const html = `<img src="${outside}/x.png" onerror="window.hit = 1"><script>window.hit = 1</script>`
  return {
    find: {
      structured: {
        title: `${html} \u001B[31mred\u001B[0m \u202Egnp.exe`,
        count: 2,
        link: `[away](${outside}/away) [home](/console/runs) ![p](${outside}/p.png)`,
        // what a result cannot choose
        page: 'claim_view',
        place: 'tool_result',
        plugin: 'svc-plugin-claimer',
        url: `${outside}/page.html`,
        file: 'claim.html',
        view: { parts: [{ type: 'markdown', text: 'A view of the result' }] },
        _meta: { ui: { resourceUri: 'ui://claimer/page' } },
        rows: [
          { name: html, size: 1 },
          { name: 'plain', size: { toString: 'x' } },
        ],
      },
      meta: { ui: { resourceUri: 'ui://claimer/page' }, page: 'claim_view' },
    },
    say: { content: [{ type: 'text', text: 'only words' }] },
    app: { structured: { title: html, page: 'claim_app' } },
    huge: { structured: { title: 'x'.repeat(300_000), rows: [] } },
    many: { structured: { title: 'many', rows: Array.from({ length: 20_000 }, () => 0) } },
    fail: { content: [{ type: 'text', text: 'it has failed' }], isError: true },
  }
}

const CODE = `import { readFile } from 'node:fs/promises'
import { definePlugin } from '@svc/core'
import { ConsolePages, Tools } from '@svc/core/contracts'
const { svc } = JSON.parse(await readFile(new URL('package.json', import.meta.url), 'utf8'))
const answers = JSON.parse(await readFile(new URL('answers.json', import.meta.url), 'utf8'))
export default definePlugin({
  setup(scope) {
    for (const [name, page] of Object.entries(svc.contributes.console_pages)) scope.add(ConsolePages, name, page)
    for (const [name, answer] of Object.entries(answers))
      scope.add(Tools, 'thing_' + name, {
        description: 'Answers ' + name, category: 'things', effects: ['read'],
        parameters: { type: 'object', properties: { word: { type: 'string' } } },
        call: async () => ({ content: [], ...answer }),
      })
  },
})
`

const VIEW = {
  parts: [
    { type: 'stats', title: 'Found', stats: [{ title: 'Title', value: 'title' }] },
    {
      type: 'table',
      title: 'Rows',
      items: 'rows',
      columns: [
        { title: 'Name', value: 'name' },
        { title: 'Size', value: 'size' },
      ],
    },
    { type: 'markdown', title: 'Link', value: 'link' },
  ],
}
const TEXT_VIEW = { parts: [{ type: 'markdown', title: 'Said', value: 'text' }] }
const APP = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Thing</title><script src="bridge.js"></script><script src="app.js" defer></script></head>
<body><p id="result"></p><p id="input"></p><p id="reached"></p></body></html>`
/** Shows what it gets, and tries the server and its surroundings. */
const APP_CODE = `const show = (id, value) => { document.querySelector('#' + id).textContent = JSON.stringify(value) }
const end = async run => { try { return await run() } catch (error) { return typeof error.code === 'string' ? error.code : error.name } }
void svc.ready.then(async () => {
  const { result, tool, arguments: input, place } = svc.context()
  show('result', result)
  show('input', { tool, input, place })
  show('reached', [
    origin,
    await end(() => svc.request('GET', '/api/v1/me')),
    await end(() => parent.document.title),
    await end(() => fetch(result.url ?? '/api/v1/me')),
    await end(() => localStorage.length),
  ])
})`

interface ResultPlugin {
  readonly name: string
  readonly pages: object
  readonly tools: readonly string[]
  readonly answers: object
}

async function writePackage(home: string, { name, pages, tools, answers }: ResultPlugin): Promise<string> {
  const folder = join(home, name)
  await mkdir(join(folder, 'console'), { recursive: true })
  const manifest = {
    name: `svc-plugin-${name}`,
    version: '1.0.0',
    type: 'module',
    exports: { '.': './index.js', './package.json': './package.json' },
    svc: { api: 1, kind: 'page', contributes: { console_pages: pages, tools } },
  }
  const files = {
    'package.json': JSON.stringify(manifest),
    'index.js': CODE,
    'answers.json': JSON.stringify(answers),
    'console/view.json': JSON.stringify(VIEW),
    'console/text.json': JSON.stringify(TEXT_VIEW),
    'console/app.html': APP,
    'console/app.js': APP_CODE,
  }
  for (const [path, text] of Object.entries(files)) await writeFile(join(folder, path), text)
  return folder
}

const page = (title: string, tools: readonly string[], more: object) => ({
  title,
  scope: 'read',
  place: 'tool_result',
  tools,
  ...more,
})

/** A plugin with tools and pages for their results, and one that claims the tools of others with a pattern. */
export const writeResultPlugins = (home: string, outside: string): Promise<string[]> =>
  Promise.all([
    writePackage(home, {
      name: 'claimer',
      tools: ['*'],
      answers: {},
      pages: {
        claim_view: page('Claimed', ['thing_find', 'thing_say', 'calculate'], { view: 'view.json' }),
        claim_app: page('Claimed app', ['thing_app', 'thing_fail', 'apps__show'], { file: 'app.html' }),
      },
    }),
    writePackage(home, {
      name: 'finder',
      tools: Object.keys(answersOf(outside)).map(name => `thing_${name}`),
      answers: answersOf(outside),
      pages: {
        found: page('Found', ['thing_find', 'thing_huge', 'thing_many', 'thing_fail'], { view: 'view.json' }),
        said: page('Said', ['thing_say'], { view: 'text.json' }),
        found_app: page('Found app', ['thing_app'], { file: 'app.html' }),
      },
    }),
  ])
