// Not a unit test: runs commands.
import { mkdir, writeFile } from 'node:fs/promises'
import type { EvaluationReport } from '@svc/core/contracts'
import { expect } from 'chai'
import { runSvc } from './support/command.ts'
import { type Document, readDocument } from './support/document.ts'

/** Each page is laid out in a folder of its own: their files have the same names. */
const PAGES: Record<string, readonly string[]> = {
  'docs/guides/use-postgresql.md': ['svc.config.yaml', 'pooler/svc.config.yaml', 'failover/svc.config.yaml'],
  'docs/guides/use-redis.md': ['svc.config.yaml', 'only-counts/svc.config.yaml', 'fallback/svc.config.yaml'],
  'docs/guides/publish-tools-over-mcp.md': ['svc.config.yaml', 'with-key/svc.config.yaml'],
  'docs/guides/secure-a-server.md': ['svc.config.yaml'],
  'docs/guides/run-teams.md': ['svc.config.yaml'],
  'docs/guides/evaluate-a-profile.md': ['cases.yaml'],
  'docs/tutorials/first-workflow.md': ['workflows/greet.yaml'],
}
const KEYS = { SVC_API_KEY: 'a-key-of-this-test', SVC_MCP_API_KEY: 'another-key-of-this-test' }

describe('the guides for operators', function () {
  this.timeout(120_000)
  const documents = new Map<string, Document>()
  const page = (path: string) => documents.get(path)!
  const svc = (document: Document, ...args: string[]) =>
    runSvc(args, { home: document.at('home'), cwd: document.at('.'), env: KEYS, share: true })

  before(async () => {
    for (const path of Object.keys(PAGES)) {
      const document = await readDocument(path)
      documents.set(path, document)
      await document.layOut()
      await mkdir(document.at('home'))
    }
  })
  after(async () => {
    for (const document of documents.values()) await document.remove()
  })

  for (const [path, names] of Object.entries(PAGES)) {
    const configurations = names.filter(name => name.endsWith('svc.config.yaml'))
    it(`${path} names the files of its whole samples`, () => {
      expect(page(path).names).to.deep.equal(names)
    })
    for (const file of configurations)
      it(`${path} has a ${file} that svc takes`, async () => {
        const { code, out, err } = await svc(page(path), 'config', 'check', '-c', file)
        expect(code, out + err).to.equal(0)
      })
  }

  it('has a cases.yaml whose cases run', async () => {
    const document = page('docs/guides/evaluate-a-profile.md')
    await writeFile(
      document.at('home/profiles.yaml'),
      'profiles: { default: { provider: local }, careful: { provider: local } }\n'
    )
    const { out, err } = await svc(document, 'eval', 'run', 'cases.yaml', '--json')
    const report = JSON.parse(out) as EvaluationReport
    expect(report, err).to.include({ complete: true, done: 4, total: 4 })
    // the built-in model greets, and calls no tool
    expect(report.cases.map(item => [item.case, item.targets[0]?.passed, item.targets[0]?.errors])).to.deep.equal([
      ['greets', 3, 0],
      ['reads the weather', 0, 0],
    ])
  })

  it('has a workflow that greets', async () => {
    const document = page('docs/tutorials/first-workflow.md')
    const { code, out, err } = await svc(document, 'workflows', 'run', 'greet', '--input', '{"names": ["Ada", "Grace"]}')
    expect(code, err).to.equal(0)
    expect(JSON.parse(out)).to.deep.equal({ greetings: ['Hello Ada, you are number 1.', 'Hello Grace, you are number 2.'] })
  })
})
