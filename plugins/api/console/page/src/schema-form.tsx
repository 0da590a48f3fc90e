import Form from '@rjsf/core/lib/components/Form.js'
import {
  ADDITIONAL_PROPERTY_FLAG,
  type ArrayFieldItemTemplateProps,
  type ArrayFieldTemplateProps,
  type BaseInputTemplateProps,
  buttonId,
  canExpand,
  enumOptionsIndexForValue,
  enumOptionsValueForIndex,
  type FieldTemplateProps,
  getInputProps,
  type MultiSchemaFieldTemplateProps,
  type ObjectFieldTemplateProps,
  type TemplatesType,
  type WidgetProps,
  type WrapIfAdditionalTemplateProps,
} from '@rjsf/utils'
import { Component, type ReactNode, useMemo } from 'react'
import { formSchema, problemsOf, validator } from './form-validator.ts'

// A form for any JSON Schema, in the looks of the console. Its texts come from tool servers: they are only text.

interface SchemaFormProps {
  readonly schema: object
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  /** Where a page has several forms: makes the ids of the fields unique. Not `root`: an element of the page has this id. */
  readonly idPrefix?: string | undefined
  /** Whether it says what is wrong with the value. Default: true. */
  readonly hasProblems?: boolean
}

export default function SchemaForm({ schema, value, onChange, idPrefix = 'form', hasProblems = true }: SchemaFormProps) {
  const own = useMemo(() => formSchema(schema), [schema])
  const problems = useMemo(() => (own && hasProblems ? problemsOf(value, own).errorSchema : {}), [own, value, hasProblems])
  if (!own) return <NoForm />
  return (
    <Boundary key={JSON.stringify(schema).length}>
      <Form
        schema={own}
        idPrefix={idPrefix}
        formData={value}
        validator={validator}
        noValidate
        noHtml5Validate
        extraErrors={problems}
        showErrorList={false}
        templates={TEMPLATES}
        widgets={WIDGETS}
        tagName="div"
        onChange={({ formData }) => onChange(formData)}
        experimental_defaultFormStateBehavior={BEHAVIOR}
      />
    </Boundary>
  )
}

/** An optional list or object stays away until the reader fills it. */
const BEHAVIOR = { emptyObjectFields: 'populateRequiredDefaults', arrayMinItems: { populate: 'requiredOnly' } } as const

const NoForm = () => (
  <p className="note">This schema is too large for a form, or refers to something that is not there. Write JSON.</p>
)

/** A schema of a stranger can break the form, but nothing else. */
class Boundary extends Component<{ readonly children: ReactNode }, { readonly isBroken: boolean }> {
  override state = { isBroken: false }
  static getDerivedStateFromError = () => ({ isBroken: true })
  override render() {
    return this.state.isBroken ? <NoForm /> : this.props.children
  }
}

const aboutId = (id: string) => `${id}__about`
const problemId = (id: string) => `${id}__problem`
const describedBy = (id: string) => `${aboutId(id)} ${problemId(id)}`

function FieldTemplate(props: FieldTemplateProps) {
  const { id, label, required, displayLabel, rawDescription, rawErrors = [], hidden, children, registry } = props
  if (hidden) return <div hidden>{children}</div>
  const { WrapIfAdditionalTemplate } = registry.templates
  const isCheck = props.schema.type === 'boolean'
  return (
    <WrapIfAdditionalTemplate {...props}>
      <div className="field form-field">
        {displayLabel && !isCheck && (
          <label htmlFor={id}>
            {label === '' ? 'Value' : label}
            {label !== '' && !required && <span className="muted"> optional</span>}
          </label>
        )}
        {children}
        {displayLabel && rawDescription && (
          <span className="muted" id={aboutId(id)}>
            {rawDescription}
          </span>
        )}
        {rawErrors.length > 0 && (
          <span className="problem" id={problemId(id)}>
            {[...new Set(rawErrors)].join(' ')}
          </span>
        )}
      </div>
    </WrapIfAdditionalTemplate>
  )
}

/** A property that the schema does not name: its name can be changed, too. */
function WrapIfAdditional(props: WrapIfAdditionalTemplateProps) {
  const { id, label, schema, children, disabled, readonly, onKeyRenameBlur, onRemoveProperty } = props
  if (!(ADDITIONAL_PROPERTY_FLAG in schema)) return <>{children}</>
  return (
    <div className="form-pair">
      <label className="field">
        <span>Name</span>
        <input className="input" id={`${id}-key`} defaultValue={label} onBlur={onKeyRenameBlur} disabled={disabled || readonly} />
      </label>
      {children}
      <button type="button" className="button button-quiet" id={buttonId(id, 'remove')} onClick={onRemoveProperty}>
        Remove<span className="visually-hidden"> {label}</span>
      </button>
    </div>
  )
}

function ObjectTemplate(props: ObjectFieldTemplateProps) {
  const { title, description, properties, schema, uiSchema, formData, onAddProperty, disabled, readonly } = props
  const isRoot = props.fieldPathId.path.length === 0
  const fields = (
    <>
      {properties.map(({ content }) => content)}
      {canExpand(schema, uiSchema, formData) && (
        <button type="button" className="button" onClick={onAddProperty} disabled={disabled || readonly}>
          Add a member
        </button>
      )}
    </>
  )
  if (isRoot)
    return properties.length === 0 && !canExpand(schema, uiSchema, formData) && !schema.oneOf && !schema.anyOf ? (
      <p className="muted small">It takes no arguments.</p>
    ) : (
      <div className="stack">{fields}</div>
    )
  return (
    <fieldset className="form-group">
      {title && <legend>{title}</legend>}
      {description && <p className="muted small">{description}</p>}
      <div className="stack">{fields}</div>
    </fieldset>
  )
}

function ArrayTemplate({ title, schema, items, canAdd, onAddClick, disabled, readonly, required }: ArrayFieldTemplateProps) {
  return (
    <fieldset className="form-group">
      <legend>
        {title}
        {!required && <span className="muted"> optional</span>}
      </legend>
      {schema.description && <p className="muted small">{schema.description}</p>}
      <div className="stack">
        {items}
        {canAdd && (
          <button type="button" className="button" onClick={() => onAddClick()} disabled={disabled || readonly}>
            Add an entry
          </button>
        )}
      </div>
    </fieldset>
  )
}

function ItemTemplate({ children, buttonsProps, index }: ArrayFieldItemTemplateProps) {
  const { hasMoveUp, hasRemove, onMoveUpItem, onRemoveItem } = buttonsProps
  return (
    <div className="form-item">
      <div className="grow">{children}</div>
      {hasMoveUp && (
        <button type="button" className="button button-quiet" onClick={onMoveUpItem} aria-label={`Move entry ${index + 1} up`}>
          ↑
        </button>
      )}
      {hasRemove && (
        <button type="button" className="button button-quiet" onClick={onRemoveItem} aria-label={`Remove entry ${index + 1}`}>
          ×
        </button>
      )}
    </div>
  )
}

const MultiSchema = ({ selector, optionSchemaField }: MultiSchemaFieldTemplateProps) => (
  <div className="form-group stack">
    {selector}
    {optionSchemaField}
  </div>
)

function Input(props: BaseInputTemplateProps) {
  const { id, value, required, disabled, readonly, onChange, onChangeOverride, options, schema, type, rawErrors = [] } = props
  const { type: inputType, step, min, max } = getInputProps(schema, type, options)
  return (
    <input
      className="input"
      id={id}
      name={id}
      type={inputType}
      step={step}
      min={min}
      max={max}
      required={required}
      disabled={disabled || readonly}
      value={value === undefined || value === null ? '' : (value as string | number)}
      onChange={onChangeOverride ?? (event => onChange(event.target.value === '' ? options.emptyValue : event.target.value))}
      aria-invalid={rawErrors.length > 0}
      aria-describedby={describedBy(id)}
      spellCheck={false}
    />
  )
}

function Area({ id, value, required, disabled, readonly, onChange, options }: WidgetProps) {
  return (
    <textarea
      className="textarea"
      id={id}
      rows={4}
      required={required}
      disabled={disabled || readonly}
      value={(value as string | undefined) ?? ''}
      onChange={event => onChange(event.target.value === '' ? options.emptyValue : event.target.value)}
      aria-describedby={describedBy(id)}
    />
  )
}

function Check({ id, value, label, disabled, readonly, onChange }: WidgetProps) {
  return (
    <label className="check">
      <input
        type="checkbox"
        id={id}
        checked={value === true}
        disabled={disabled || readonly}
        onChange={event => onChange(event.target.checked)}
        aria-describedby={describedBy(id)}
      />
      <span>{label || 'Value'}</span>
    </label>
  )
}

/** The choice between the schemas of `oneOf` or `anyOf`, whose label is not shown. */
const VARIANT = /__(?:one|any)of_select$/

function Select({ id, value, options, multiple, required, disabled, readonly, onChange, label, hideLabel }: WidgetProps) {
  const { enumOptions = [], emptyValue } = options
  const chosen = enumOptionsIndexForValue(value, enumOptions, multiple)
  return (
    <select
      className="select"
      id={id}
      multiple={multiple}
      required={required}
      disabled={disabled || readonly}
      value={chosen ?? (multiple ? [] : '')}
      onChange={({ target }) => {
        const picked = multiple ? [...target.selectedOptions].map(option => option.value) : target.value
        onChange(enumOptionsValueForIndex(picked, enumOptions, emptyValue))
      }}
      aria-label={hideLabel || !label || VARIANT.test(id) ? 'Which one' : undefined}
      aria-describedby={describedBy(id)}
    >
      {!multiple && (!required || chosen === undefined) && <option value="">–</option>}
      {enumOptions.map(({ label: text }, at) => (
        <option key={at} value={String(at)}>
          {text}
        </option>
      ))}
    </select>
  )
}

const Nothing = () => null

const TEMPLATES: Partial<TemplatesType> = {
  FieldTemplate,
  WrapIfAdditionalTemplate: WrapIfAdditional,
  ObjectFieldTemplate: ObjectTemplate,
  ArrayFieldTemplate: ArrayTemplate,
  ArrayFieldItemTemplate: ItemTemplate,
  MultiSchemaFieldTemplate: MultiSchema,
  BaseInputTemplate: Input,
  ButtonTemplates: { SubmitButton: Nothing } as unknown as TemplatesType['ButtonTemplates'],
}
const WIDGETS = { SelectWidget: Select, CheckboxWidget: Check, TextareaWidget: Area }
