import { refusal } from '@svc/worker-pool/child'
import { messageOf, notTooLong } from './bounds.ts'

interface Input {
  readonly template: string
  readonly values: object
  readonly escape: boolean
}

export async function renderTemplate({ template, values, escape }: Input) {
  const { default: mustache } = await import('mustache')
  const missing = new Set<string>()

  /** Sees a value's own members and nothing else: no prototype, no function. */
  class Values extends mustache.Context {
    override push(view: unknown) {
      return new Values(view, this)
    }
    override lookup(name: string): unknown {
      const found = name === '.' ? { value: this.view as unknown } : this.#find(name.split('.'))
      if (!found) missing.add(name)
      return found?.value
    }
    #find(path: readonly string[]): Found | undefined {
      if (own(this.view, path[0]!)) return path.reduce<Found | undefined>(member, { value: this.view })
      const parent = this.parent as Values | undefined
      return parent === undefined ? undefined : parent.#find(path)
    }
  }
  const writer = new mustache.Writer()
  const shown = (value: unknown) => (typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value))
  const text = rendered(() =>
    writer.render(template, new Values(values), {}, { escape: value => (escape ? mustache.escape(shown(value)) : shown(value)) })
  )
  notTooLong(text.length, 'fill in less')
  return { text, missing: [...missing] }
}

interface Found {
  readonly value: unknown
}

const own = (value: unknown, name: string) => typeof value === 'object' && value !== null && Object.hasOwn(value, name)

const member = (found: Found | undefined, name: string): Found | undefined =>
  found && own(found.value, name) ? { value: (found.value as Record<string, unknown>)[name] } : undefined

function rendered(work: () => string): string {
  try {
    return work()
  } catch (error) {
    if (error instanceof RangeError) throw error
    throw refusal('TEMPLATE_INVALID', `the template cannot be filled: ${messageOf(error)}`, {
      hint: 'close each {{#section}} with {{/section}}',
    })
  }
}
