import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A page of the plugin: its title, its place, and its view as data or as text. Without a view, it is an app that shows its place. */
interface ViewPage {
  readonly title: string
  readonly view?: object | string
  readonly place?: 'page' | 'overview' | 'run' | 'conversation'
}

interface ViewPlugin {
  readonly name: string
  readonly pages: Readonly<Record<string, ViewPage>>
  readonly rights: readonly string[]
  /** The bodies of the answers of `GET /<name>/<path>`, as JSON. */
  readonly answers: Readonly<Record<string, string>>
}

/** Each GET route answers with a file; the others note what they got. `GET /<name>/seen` says what. */
const code = ({ name, pages, answers }: ViewPlugin) => `import { readFile } from 'node:fs/promises'
import { definePlugin } from '@svc/core'
import { ConsolePages, Routes } from '@svc/core/contracts'
const seen = []
const note = (request, where) => { seen.push({ where, params: request.params, query: request.query, body: request.body ?? null }) }
const route = (method, path, handle) => ({ method, path, summary: 'Answers', scope: 'read', handle })
export default definePlugin({
  setup(scope) {
    for (const [page, data] of Object.entries(${JSON.stringify(declared(pages))})) scope.add(ConsolePages, page, data)
    for (const path of ${JSON.stringify(Object.keys(answers))})
      scope.add(Routes, '${name}_' + path, route('GET', '/${name}/' + path, async request => {
        note(request, path)
        return { body: JSON.parse(await readFile(new URL('answers/' + path + '.json', import.meta.url), 'utf8')) }
      }))
    scope.add(Routes, '${name}_seen', route('GET', '/${name}/seen', async () => ({ body: { seen } })))
    scope.add(Routes, '${name}_add', { ...route('POST', '/${name}/things', async request => { note(request, 'add'); return { status: 201, body: {} } }), body: { type: 'object' } })
    scope.add(Routes, '${name}_remove', route('DELETE', '/${name}/things/:id', async request => { note(request, 'remove'); return { status: 204 } }))
  },
})
`

const declared = (pages: ViewPlugin['pages']) =>
  Object.fromEntries(
    Object.entries(pages).map(([page, { title, view, place }]) => [
      page,
      {
        title,
        scope: 'read',
        ...(view === undefined ? { file: 'app.html' } : { view: `${page}.json` }),
        ...(place ? { place } : {}),
      },
    ])
  )

const APP = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>App</title></head>
<body><p id="place"></p><script src="bridge.js"></script><script src="app.js"></script></body>
</html>`
const APP_CODE = `svc.onContext(({ place, run }) => { document.querySelector('#place').textContent = JSON.stringify({ place, run }) })`

/** Writes the package of a plugin with views. */
export async function writeViewPlugin(folder: string, plugin: ViewPlugin): Promise<string> {
  const { name, pages, rights, answers } = plugin
  const home = join(folder, name)
  await mkdir(join(home, 'console'), { recursive: true })
  await mkdir(join(home, 'answers'))
  const route = (method: string, path: string) => ({ method, path: `/${name}/${path}`, scope: 'read' })
  const manifest = {
    name: `svc-plugin-${name}`,
    version: '1.0.0',
    type: 'module',
    exports: { '.': './index.js', './package.json': './package.json' },
    svc: {
      api: 1,
      kind: 'page',
      contributes: {
        console_pages: declared(pages),
        routes: {
          ...Object.fromEntries(Object.keys(answers).map(path => [`${name}_${path}`, route('GET', path)])),
          [`${name}_seen`]: route('GET', 'seen'),
          [`${name}_add`]: route('POST', 'things'),
          [`${name}_remove`]: route('DELETE', 'things/:id'),
        },
      },
      permissions: { console: rights },
    },
  }
  const texts = Object.entries(pages).map(
    ([page, { view }]) => [`console/${page}.json`, typeof view === 'string' ? view : JSON.stringify(view ?? null)] as const
  )
  const bodies = Object.entries(answers).map(([path, body]) => [`answers/${path}.json`, body] as const)
  for (const [path, text] of [
    ['package.json', JSON.stringify(manifest)] as const,
    ['index.js', code(plugin)] as const,
    ['console/app.html', APP] as const,
    ['console/app.js', APP_CODE] as const,
    ...texts,
    ...bodies,
  ])
    await writeFile(join(home, path), text)
  return home
}
