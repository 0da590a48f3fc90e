import { backoffDelay, type Principal, type SlotView } from '@svc/core'
import type { JobKind, JobKindRecord, JobRequest, Json } from '@svc/core/contracts'
import { type ParametersCheck, toolSchema } from '@svc/plugin-kit/tool-schema'
import { invalid, kindForbidden, kindInternal, kindUnknown } from './errors.ts'
import type { JobsConfig } from './settings.ts'

/** How jobs of a kind are executed: the configuration, then the plugin, then the defaults. */
export interface KindLimits {
  /** Infinity: no limit. */
  readonly concurrency: number
  readonly timeoutMs: number
  readonly attempts: number
}

const NAME = /^[a-z][a-z0-9_.-]{0,63}$/
const LONGEST_MS = 7 * 86_400_000
const [FIRST_MS, MAX_MS] = [1_000, 600_000]

/** A value of a plugin, which can be anything. */
const whole = (value: unknown, least: number, most: number): number | undefined =>
  Number.isSafeInteger(value) && Number(value) >= least ? Math.min(Number(value), most) : undefined

/** The job kinds of all plugins. Their data is untrusted. */
export class Kinds {
  readonly #view: SlotView<JobKind>
  readonly #config: JobsConfig
  readonly #schemas = new WeakMap<JobKind, Promise<ParametersCheck>>()

  constructor(view: SlotView<JobKind>, config: JobsConfig) {
    this.#view = view
    this.#config = config
  }

  names(): string[] {
    return this.#view.names().filter(name => NAME.test(name))
  }

  get(name: string): JobKind | undefined {
    return NAME.test(name) ? this.#view.get(name) : undefined
  }

  limits(name: string): KindLimits {
    const kind = this.get(name)
    const own = Object.hasOwn(this.#config.kinds, name) ? this.#config.kinds[name] : undefined
    return {
      concurrency: own?.concurrency ?? whole(kind?.concurrency, 1, 1000) ?? Number.POSITIVE_INFINITY,
      timeoutMs: seconds(own?.timeout_s) ?? whole(kind?.timeoutMs, 1, LONGEST_MS) ?? this.#config.timeout_s * 1000,
      attempts: own?.attempts ?? whole(kind?.attempts, 1, 100) ?? this.#config.attempts,
    }
  }

  /** Milliseconds before the next attempt, by the number of failed attempts. */
  delay(name: string, failures: number): number {
    const { firstMs, maxMs, delaysMs } = { ...this.get(name)?.backoff } as Record<string, unknown>
    const listed = Array.isArray(delaysMs) ? whole(delaysMs[Math.min(failures, delaysMs.length) - 1], 0, LONGEST_MS) : undefined
    if (listed !== undefined) return listed
    return backoffDelay(failures + 1, whole(firstMs, 0, LONGEST_MS) ?? FIRST_MS, whole(maxMs, 0, LONGEST_MS) ?? MAX_MS)
  }

  /** All kinds by name, as this principal sees them. */
  list(principal: Principal): JobKindRecord[] {
    return this.names()
      .toSorted()
      .flatMap(name => {
        const kind = this.get(name)
        return kind ? [this.#recordOf(name, kind, principal)] : []
      })
  }

  /** Returns the input with the defaults of its schema. Throws JOB_KIND_UNKNOWN, FORBIDDEN, INVALID_VALUE. */
  async check({ kind: name, internal }: JobRequest, input: Json, principal: Principal): Promise<Json> {
    const kind = this.get(name)
    if (!kind) {
      const allowed = this.list(principal).filter(({ canStart }) => canStart)
      throw kindUnknown(
        String(name),
        allowed.map(known => known.name)
      )
    }
    if (kind.internal !== undefined && kind.internal !== internal) throw kindInternal(name, this.#view.owner(name) ?? '')
    if (kind.internal === undefined && !this.#canAdd(name, kind, principal)) throw kindForbidden(name, principal.id)
    if (kind.input === undefined) return input
    const schema = await this.#schemaOf(kind).catch(() => {
      throw invalid('kind', `cannot be checked: the input schema of "${name}" is not a valid JSON Schema`)
    })
    const filled = structuredClone(input)
    const [problem] = schema.check(filled, 'first')
    if (problem) throw invalid(problem.path === '' ? 'input' : `input.${problem.path}`, problem.message)
    return filled
  }

  #recordOf(name: string, kind: JobKind, principal: Principal): JobKindRecord {
    const { concurrency, timeoutMs, attempts } = this.limits(name)
    const isInternal = kind.internal !== undefined
    return {
      name,
      description: String(kind.description),
      plugin: this.#view.owner(name) ?? '',
      ...(Number.isFinite(concurrency) ? { concurrency } : {}),
      timeoutMs,
      attempts,
      isInternal,
      canStart: !isInternal && this.#canAdd(name, kind, principal),
      ...(typeof kind.scope === 'string' && !isInternal ? { scope: kind.scope } : {}),
      ...(kind.input === undefined ? {} : { input: kind.input }),
    }
  }

  #canAdd(name: string, { scope }: JobKind, { id, scopes }: Principal): boolean {
    if (scopes.includes('*') || scopes.includes('admin')) return true
    if (id === `plugin:${this.#view.owner(name)}`) return true
    return typeof scope === 'string' && scopes.includes(scope)
  }

  #schemaOf(kind: JobKind): Promise<ParametersCheck> {
    let schema = this.#schemas.get(kind)
    if (!schema) this.#schemas.set(kind, (schema = toolSchema(kind.input!)))
    return schema
  }
}

const seconds = (value: number | undefined) => (value === undefined ? undefined : value * 1000)
