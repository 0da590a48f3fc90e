/** A model of this provider; both limits in tokens. */
export interface LocalModel {
  readonly id: string
  readonly context: number
  readonly output: number
}

/** The models it has unless the configuration says otherwise; the first is the default, the second is for trimming. */
export const MODELS: readonly LocalModel[] = [
  { id: 'local-1', context: 1_048_576, output: 4096 },
  { id: 'local-small', context: 8192, output: 1024 },
]
