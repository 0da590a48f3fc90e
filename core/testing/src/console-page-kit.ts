import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, extname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type ConsolePageManifest,
  consolePagesOf,
  isReservedRequest,
  matchesPattern,
  type PackageInfo,
  readConsoleView,
  readManifest,
} from '@svc/core'
import type { KitCase } from './kit-case.ts'

/** The folder of a package with the files of its pages. */
const FOLDER = 'console'
/** The console sends it beside each page. */
const BRIDGE = 'bridge.js'
/** What the console sends. */
const TYPES = ['.html', '.js', '.css', '.svg', '.png', '.jpg', '.webp', '.gif', '.woff2']

/**
 * Cases for the pages of a plugin in the console: `for (const one of await consolePageKit(new URL('..', import.meta.url)))
 * it(one.title, one.run)`. They find mistakes in views, and in apps what a browser refuses without a word: scripts in the markup, modules,
 * files of other servers, requests that the manifest does not list. `pluginKit` has them too.
 */
export async function consolePageKit(folder: URL | string): Promise<KitCase[]> {
  const path = folder instanceof URL || folder.startsWith('file:') ? fileURLToPath(folder) : folder
  return consolePageCases(await readManifest(join(path, 'package.json')))
}

/** The same, for a manifest that was read. */
export function consolePageCases({ folder, manifest }: Pick<PackageInfo, 'folder' | 'manifest'>): KitCase[] {
  const pages = consolePagesOf(manifest)
  if (pages.length === 0) return []
  const rights = manifest.permissions?.console ?? []
  return [
    {
      title: 'console pages: the package contains their folder',
      async run() {
        const { files } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly files?: readonly string[] }
        const isPacked = files === undefined || files.some(file => /^(?:\.\/)?console(?:\/|$)|^\*/.test(file))
        assert.ok(isPacked, `"files" in package.json does not list "${FOLDER}": npm pack would leave the pages out`)
      },
    },
    {
      title: 'console pages: each declared request is one that a page can send',
      async run() {
        const never = rights.filter(isReservedRequest)
        assert.deepEqual(never, [], 'the console sends no such request for a page: take it out of "permissions.console"')
      },
    },
    ...pages.flatMap(([name, page]) =>
      page.view === undefined
        ? [...casesOf(name, readPage(folder, page), rights), ...resultCases(name, folder, page)]
        : [viewCase(name, folder, page, rights), ...resultCases(name, folder, page)]
    ),
  ]
}

function viewCase(
  name: string,
  folder: string,
  { view = '', place = 'page' }: ConsolePageManifest,
  rights: readonly string[]
): KitCase {
  return {
    title: `console page ${name}: has a view that the console can draw`,
    async run() {
      const file = join(folder, FOLDER, view)
      assert.ok(existsSync(file), `${FOLDER}/${view} does not exist`)
      const { problems } = readConsoleView(readFileSync(file, 'utf8'), { rights, place })
      assert.deepEqual(problems, [], `change this in ${FOLDER}/${view}`)
    },
  }
}

/** A page for results of tools is of no use if it does not read them. */
function resultCases(name: string, folder: string, page: ConsolePageManifest): KitCase[] {
  if (page.place !== 'tool_result') return []
  return [
    {
      title: `console page ${name}: shows the result of its tools`,
      async run() {
        if (page.view !== undefined) {
          const { parts = [] } = JSON.parse(readFileSync(join(folder, FOLDER, page.view), 'utf8')) as View
          const isShown = parts.some(part => part.type !== 'form' && part.request === undefined && part.text === undefined)
          return assert.ok(isShown, 'no part of its view shows the result: leave "request" out of one')
        }
        const its = readPage(folder, page)
        const isRead = scriptsOf(its).some(path =>
          /\b(?:context\s*\(|onContext\b|host-context-changed)/.test(its.read(path) ?? '')
        )
        assert.ok(isRead, 'none of its scripts reads the result: it is in svc.context().result after svc.ready')
      },
    },
  ]
}

interface View {
  readonly parts?: readonly { readonly type?: string; readonly request?: string; readonly text?: string }[]
}

interface PageFiles {
  /** From the folder of the pages. */
  readonly file: string
  readonly html: string | undefined
  readonly tags: readonly Tag[]
  readonly read: (path: string) => string | undefined
}

interface Tag {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  /** The text to the next tag. */
  readonly text: string
}

function readPage(folder: string, { file = 'index.html' }: ConsolePageManifest): PageFiles {
  const read = (path: string) => {
    const full = join(folder, FOLDER, path)
    return existsSync(full) ? readFileSync(full, 'utf8') : undefined
  }
  const html = read(file)
  return { file, html, tags: tagsIn(html ?? ''), read }
}

const ATTRIBUTE = /([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?/g

const tagsIn = (html: string): Tag[] =>
  [...html.replaceAll(/<!--[^]*?-->/g, '').matchAll(/<([a-z][\w-]*)((?:"[^"]*"|'[^']*'|[^"'>])*)>([^<]*)/gi)].map(
    ([, name = '', attributes = '', text = '']) => ({
      name: name.toLowerCase(),
      attributes: Object.fromEntries(
        [...attributes.matchAll(ATTRIBUTE)].map(([, key = '', a, b, c]) => [key.toLowerCase(), a ?? b ?? c ?? ''])
      ),
      text,
    })
  )

function casesOf(name: string, page: PageFiles, rights: readonly string[]): KitCase[] {
  const title = (text: string) => `console page ${name}: ${text}`
  return [
    {
      title: title('has its file, with a language, a title and bridge.js before its own scripts'),
      async run() {
        assert.ok(page.html !== undefined, `${FOLDER}/${page.file} does not exist`)
        const tag = (wanted: string) => page.tags.find(one => one.name === wanted)
        assert.ok(tag('html')?.attributes.lang, 'the element html has no attribute lang')
        assert.ok(tag('title')?.text.trim(), 'it has no title')
        const [first] = scriptsOf(page)
        assert.equal(first, pathFrom(page.file, BRIDGE), `its first script must be <script src="${BRIDGE}"></script>`)
      },
    },
    {
      title: title('has scripts and styles in files, as its policy demands'),
      async run() {
        assert.deepEqual(page.tags.flatMap(inlineCode), [], 'the browser does not run this: move it to a file')
        const modules = page.tags.filter(one => one.name === 'script' && one.attributes.type === 'module')
        assert.equal(modules.length, 0, 'a frame without an origin loads no modules: use a plain script, or bundle as "iife"')
      },
    },
    {
      title: title('loads only files of its folder that the console sends'),
      async run() {
        for (const path of filesOf(page)) {
          assert.ok(!/^(?:[a-z][\w+.-]*:|\/)/i.test(path), `${path} is not a relative path; nothing outside can be reached`)
          assert.ok(TYPES.includes(extname(path)), `${path}: the console sends only ${TYPES.join(', ')}`)
          assert.ok(path.endsWith(BRIDGE) || page.read(path) !== undefined, `${FOLDER}/${path} does not exist`)
        }
      },
    },
    {
      title: title('sends only requests that the manifest lists'),
      async run() {
        const sent = scriptsOf(page).flatMap(path => requestsIn(page.read(path) ?? ''))
        const missing = sent.filter(request => !rights.some(right => matchesPattern(right, request)))
        assert.deepEqual(missing, [], 'list them in "permissions.console" of the manifest')
      },
    },
  ]
}

const pathFrom = (file: string, path: string) =>
  /^(?:[a-z][\w+.-]*:|\/)/i.test(path) ? path : posix.normalize(posix.join(dirname(file), path))

const scriptsOf = ({ file, tags }: PageFiles): string[] =>
  tags.flatMap(({ name, attributes }) => (name === 'script' && attributes.src ? [pathFrom(file, attributes.src)] : []))

/** What the browser loads for the page. */
const filesOf = ({ file, tags }: PageFiles): string[] =>
  tags.flatMap(({ name, attributes }) => {
    const path = name === 'link' ? attributes.href : attributes.src
    return path && !/^(?:data|blob):/.test(path) ? [pathFrom(file, path)] : []
  })

function inlineCode({ name, attributes, text }: Tag): string[] {
  const handlers = Object.entries(attributes).filter(
    ([key, value]) => key.startsWith('on') || key === 'style' || /^\s*javascript:/i.test(value)
  )
  const isCode = (name === 'script' && !attributes.src) || name === 'style'
  return [...handlers.map(([key]) => `<${name} ${key}=…>`), ...(isCode ? [`<${name}>${text.trim().slice(0, 40)}`] : [])]
}

/** The requests whose method and path stand in the code; a part in braces can be anything. */
const requestsIn = (code: string): string[] =>
  [...code.matchAll(/\bsvc\s*\.\s*request\(\s*(['"`])([A-Z]+)\1\s*,\s*(['"`])([^]*?)\3/g)].map(
    ([, , method = '', , path = '']) => `${method} ${path.replaceAll(/\$\{[^}]*\}/g, 'x')}`
  )
