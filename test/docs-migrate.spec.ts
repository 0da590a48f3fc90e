import { writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { type Document, documentTests, readDocument } from './support/document.ts'

const document: Document = await readDocument('docs/guides/migrate.md')

/** Keys in the environment, until the case ends. */
function withVariables(names: readonly string[]): Disposable {
  const before = names.map(name => [name, process.env[name]] as const)
  for (const name of names) process.env[name] = 'a-key'
  const back = (name: string, value: string | undefined) =>
    value === undefined ? delete process.env[name] : (process.env[name] = value)
  return { [Symbol.dispose]: () => before.forEach(([name, value]) => back(name, value)) }
}

describe('docs/guides/migrate.md', () => {
  before(() => document.layOut())
  after(() => document.remove())
  documentTests(document, { passes: 30 })

  for (const file of ['litellm/svc.config.yaml', 'metamcp/svc.config.yaml'])
    it(`has a ${file} that svc takes`, async () => {
      using _keys = withVariables(['GROQ_API_KEY', 'OPENAI_API_KEY', 'DOCS_KEY'])
      const { code, out } = await document.svc('config', 'check', '-c', file)
      expect(code, out).to.equal(0)
    })

  it('has workflows that are valid with the node of its package', async () => {
    await writeFile(document.at('moved.yaml'), 'plugins: [./contacts]\nworkflows: { roots: [.] }\n')
    const { code, out } = await document.svc('workflows', 'validate', 'subscribe.yaml', 'publish.yaml', '-c', 'moved.yaml')
    expect(code, out).to.equal(0)
  })
})
