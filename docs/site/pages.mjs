// Turns the Markdown of the repository into pages for Starlight: a title in the front matter, links by slug.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const SOURCES = ['docs/**/*.md', '*.md', '{core,libs,plugins,cli,client,bench,examples}/**/README.md']
const FENCE = /^```[^]*?^```$/gm
const LINK = /(!?)\[([^\]]*)\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)/g

/** The address of a page: docs/guides/deploy.md → guides/deploy. */
export function slugOf(file) {
  const path = file.replace(/\.md$/, '').replace(/(^|\/)README$/, '$1index')
  const inDocs = path.startsWith('docs/')
  const place = inDocs ? path.slice('docs/'.length) : path.includes('/') ? `packages/${path}` : `project/${path}`
  const slug = place === 'project/index' ? 'project/readme' : place.replace(/(^|\/)index$/, '')
  return slug.toLowerCase().replaceAll('.', '-')
}

/** Every page: slug → text with front matter. */
export function pages(root) {
  const files = globSync(SOURCES, { cwd: root, exclude: ['**/node_modules/**', '**/dist/**', 'docs/site/**'] })
  const known = new Set(files)
  return new Map(files.map(file => [slugOf(file), pageOf(root, file, known)]))
}

function pageOf(root, file, known) {
  const text = readFileSync(join(root, file), 'utf8')
  const [, heading = file] = /^# (.*)$/m.exec(text) ?? []
  const body = outsideFences(text.replace(/^# .*\n/m, ''), part =>
    part.replaceAll(LINK, (...match) => link(root, file, known, match))
  )
  const slug = slugOf(file)
  const front = { title: heading.replaceAll('`', ''), ...(slug === '' ? {} : { slug }) }
  const lines = Object.entries(front).map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
  return `---\n${lines.join('\n')}\n---\n${body}`
}

function outsideFences(text, change) {
  const fences = text.match(FENCE) ?? []
  return text
    .split(FENCE)
    .map((part, at) => change(part) + (fences[at] ?? ''))
    .join('')
}

/** A link to a page leads to its slug; a link to another file of the repository becomes its text. */
function link(root, from, known, [, image, label, path, anchor = '']) {
  const target = path === '' ? from : join(dirname(from), path).replace(/\/$/, '')
  if (image) return `![${label}](/${target.replace(/^docs\//, '')})`
  const page = [target, join(target, 'README.md')].find(item => known.has(item))
  if (page === undefined && !existsSync(join(root, target))) throw new Error(`${from}: ${path} does not exist`)
  return page === undefined ? label : `[${label}](/${slugOf(page)}${slugOf(page) === '' ? '' : '/'}${anchor})`
}
