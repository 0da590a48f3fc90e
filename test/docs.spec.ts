import { execFile } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { REFERENCE } from '../scripts/docs.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const LINK = /\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)/g

const proseOf = (file: string) => readFileSync(file, 'utf8').replaceAll(/^```[^]*?^```$/gm, '')

/** What a heading is linked by. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
const anchorsIn = (file: string) => [...proseOf(file).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading))

/** The links of a document that lead to no file of the repository, or to no heading there. */
function brokenIn(file: string): string[] {
  const words = proseOf(join(ROOT, file)).replaceAll(/`[^`\n]*`/g, '')
  return [...words.matchAll(LINK)].flatMap(([link, path = '', anchor]) => {
    const target = path === '' ? join(ROOT, file) : join(ROOT, dirname(file), path)
    const leads = existsSync(target) && (anchor === undefined || !target.endsWith('.md') || anchorsIn(target).includes(anchor))
    return leads ? [] : [`${file}: ${link}`]
  })
}

/** The first line in which two texts differ. Whole pages would hide it in a report. */
function firstDifference(written: string, current: string) {
  const [a, b] = [written.split('\n'), current.split('\n')]
  const at = Array.from({ length: Math.max(a.length, b.length) }, (_, line) => line).find(line => a[line] !== b[line])
  return at === undefined ? undefined : { line: at + 1, written: a[at], current: b[at] }
}

describe('the documents', () => {
  it('have links that lead somewhere', () => {
    const files = globSync('**/*.md', { cwd: ROOT, exclude: ['**/node_modules/**', '**/dist/**', '**/.git/**'] })
    expect(files).to.include('docs/reference/contracts.md')
    expect(files.flatMap(brokenIn)).to.deep.equal([])
  })

  it('become pages of the site, each with a title, and links to other pages (npm run docs:site builds it)', async () => {
    const { pages } = (await import(new URL('../docs/site/pages.mjs', import.meta.url).href)) as {
      pages: (root: string) => ReadonlyMap<string, string>
    }
    const all = pages(ROOT)
    expect([...all.keys()]).to.include.members([
      '',
      'guides/deploy',
      'reference/http',
      'project/readme',
      'packages/cli',
      'packages/client',
    ])
    for (const [slug, text] of all) expect(text, slug).to.match(/^---\ntitle: ".+"\n/)
    expect(all.get('guides/deploy')).to.include('[Secure a server](/guides/secure-a-server/)')
  })

  for (const [file, page] of Object.entries(REFERENCE))
    it(`have a reference/${file} that is what the code says (npm run docs writes it)`, async () => {
      const written = readFileSync(join(ROOT, 'docs/reference', file), 'utf8')
      expect(firstDifference(written, await page()), `docs/reference/${file} is not current; run npm run docs`).to.equal(
        undefined
      )
    })

  it('have for each tool its category, its effects, its arguments and the form of what it answers', async () => {
    const tools = (await REFERENCE['tools.md']!()).split(/^### /m).slice(1)
    expect(tools).to.have.length.above(25)
    const lacking = tools.filter(
      tool =>
        !/^Category: \w+ · effects: [a-z, ]+/m.test(tool) || !/^(\| `\w|No arguments\.)/m.test(tool) || !/^Answers `/m.test(tool)
    )
    expect(lacking.map(tool => tool.split('\n')[0])).to.deep.equal([])
  })

  it('have notices of what others wrote that are what the lock says (npm run notices writes them)', async () => {
    const script = fileURLToPath(new URL('../scripts/notices.mjs', import.meta.url))
    const { stderr } = await promisify(execFile)(process.execPath, [script, '--check'])
    expect(stderr).to.equal('')
  })
})
