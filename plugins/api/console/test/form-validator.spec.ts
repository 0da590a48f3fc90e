import { expect } from 'chai'
import { formSchema, problemsOf, validator } from '../page/src/form-validator.ts'

const PERSON = {
  type: 'object',
  required: ['name'],
  definitions: { name: { type: 'string', minLength: 2 } },
  properties: {
    name: { $ref: '#/definitions/name' },
    lines: { type: 'array', minItems: 1, items: { type: 'integer' } },
    // a member that is called like a keyword
    pattern: { type: 'string' },
  },
}

describe('the validator of the forms', () => {
  it('finds what is wrong behind references, at its place, also after it has chosen between schemas', () => {
    const schema = formSchema(PERSON)!
    const wrong = { name: 'x', lines: [] }
    expect(validator.isValid({ $ref: '#/definitions/name' }, 'Ada', schema)).to.equal(true)
    expect(validator.isValid({ $ref: '#/definitions/name' }, 'x', schema)).to.equal(false)
    const { errorSchema, errors } = problemsOf(wrong, schema)
    expect(Object.keys(errorSchema)).to.have.members(['name', 'lines'])
    expect(errors.map(({ property }) => property)).to.have.members(['name', 'lines'])
    expect(problemsOf({ name: 'Ada', lines: [1] }, schema).errors).to.deep.equal([])
    // the schema is as it was: the form reads it, too
    expect(schema).to.deep.equal(PERSON)
  })

  it('leaves regular expressions out, which can take hours, but no member of that name', () => {
    const schema = formSchema({
      type: 'object',
      properties: { pattern: { type: 'string', pattern: '^(a+)+$' } },
      patternProperties: { '^(a+)+$': {} },
    })
    expect(schema).to.deep.equal({ type: 'object', properties: { pattern: { type: 'string' } } })
    const began = performance.now()
    problemsOf({ pattern: `${'a'.repeat(40)}!` }, schema!)
    expect(performance.now() - began).to.be.lessThan(5_000)
  })

  it('gives up schemas that are too deep or too large for a form, and references to nothing', () => {
    let deep: object = { type: 'string' }
    for (let depth = 0; depth < 100; depth++) deep = { type: 'array', items: deep }
    expect(formSchema({ type: 'object', properties: { deep } })).to.equal(undefined)
    expect(formSchema({ type: 'object', description: 'x'.repeat(300_000) })).to.equal(undefined)
    const lost = formSchema({ type: 'object', properties: { a: { $ref: '#/definitions/none' } } })!
    expect(problemsOf({ a: 1 }, lost).errors).to.deep.equal([])
    expect(validator.isValid({ $ref: '#/definitions/none' }, 1, lost)).to.equal(false)
  })
})
