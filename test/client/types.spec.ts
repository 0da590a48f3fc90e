import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { clientDocument, headOf, TYPES } from '../../scripts/client-types.ts'

describe('the types of the client', function () {
  this.timeout(60_000)

  it('are current', async () => {
    const text = await readFile(TYPES, 'utf8')
    const end = text.indexOf('\n') + 1
    const head = headOf(await clientDocument(), text.slice(end))
    expect(text.slice(0, end), 'client/src/api.ts is not current: run `npm run client:types`').to.equal(head)
  })

  it('have no model endpoints: their clients are the SDKs of these protocols', async () => {
    const { paths, components } = await clientDocument()
    expect(Object.keys(paths).filter(path => path.startsWith('/v1'))).to.deep.equal([])
    expect(components.schemas).to.include.keys('Error', 'ChatEvent').and.not.include.keys('GeminiAnswer', 'ModelApiError')
  })
})
