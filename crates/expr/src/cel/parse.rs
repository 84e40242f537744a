//! The parser.

use crate::{compile_error::ErrorAt, hints, operator::Operator};

use super::{
    lex::tokens,
    syntax::{ElementExpr, Expr, FieldExpr, Kind, Literal},
    token::{Token, TokenKind},
};

/// The maximum length of an expression, in bytes.
const LONGEST: usize = 64 * 1024;

/// The maximum nesting of expressions. Checker, compiler and evaluator recurse once per level.
const DEEPEST: u16 = 96;

/// The maximum nesting of brackets. The parser needs more stack per level than the evaluator.
const DEEPEST_BRACKETS: u16 = 48;

/// Identifiers that CEL reserves. They are valid as field names.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

/// Parses an expression.
pub(crate) fn parse(text: &str) -> Result<Expr, ErrorAt> {
    if text.len() > LONGEST {
        return Err(ErrorAt::new(
            0,
            format!("the expression has {} bytes, the limit is {LONGEST}", text.len()),
        ));
    }
    let tokens = tokens(text).map_err(|slip| match text.split_whitespace().next() {
        // In `let x = 1` the lexer fails at `=`, but `let` is the cause.
        Some("let" | "var" | "const") => slip.maybe_hint(hints::for_reserved("let")),
        _ => slip,
    })?;
    let mut parser = Parser { text, tokens, next: 0, brackets: 0 };
    let expr = parser.expression()?;
    match parser.peek().kind {
        TokenKind::End => Ok(expr),
        _ => Err(parser.after_expression()),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    brackets: u16,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        // `End` stays next, however often it is consumed.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek().kind, TokenKind::Sign(own) if own == sign)
    }

    /// Consumes an operator, if it is next, and returns its offset.
    fn take(&mut self, sign: &str) -> Option<u32> {
        self.is(sign).then(|| self.advance().at)
    }

    fn expect(&mut self, sign: &str, what: &str) -> Result<u32, ErrorAt> {
        self.take(sign).ok_or_else(|| self.unexpected(what))
    }

    /// The error for a token after a complete expression.
    fn after_expression(&self) -> ErrorAt {
        let slip = self.unexpected("an operator or end of expression");
        // No expression starts with two words, but prose does. Where the second is an operator of another
        // language (`a and b`, `phase is 'Up'`), its own hint is better; `it is broken` is prose.
        let words = self.tokens.iter().take_while(|token| matches!(token.kind, TokenKind::Word(_))).count();
        let is_verb = words > 2 && matches!(&self.peek().kind, TokenKind::Word(word) if word == "is");
        if self.next == 1 && words > 1 && (slip.hint.is_none() || is_verb) {
            return slip.hint(hints::for_plain_text(self.text));
        }
        slip
    }

    fn unexpected(&self, wanted: &str) -> ErrorAt {
        let token = self.peek();
        let found = match &token.kind {
            TokenKind::End => "end of expression".to_owned(),
            _ => format!("`{}`", &self.text[token.at as usize..token.end as usize]),
        };
        let before = self.next.checked_sub(1).map(|before| &self.tokens[before].kind);
        let is_after = |sign: &str| matches!(before, Some(TokenKind::Sign(own)) if *own == sign);
        let hint = match &token.kind {
            _ if matches!(before, Some(TokenKind::Word(word)) if word == "not") => {
                Some("write !x".to_owned())
            }
            TokenKind::Sign(".") if is_after("?") => Some("write a.?b for an optional field".to_owned()),
            TokenKind::Sign("?") if is_after("?") => Some("write a.?b.orValue(other)".to_owned()),
            _ if found.starts_with("`.") && wanted.contains("operator") => {
                Some(format!("write [{}] to index a list", found.trim_matches(['`', '.'])))
            }
            TokenKind::Word(word) if wanted.contains("operator") => hints::for_word_after_expression(word),
            TokenKind::Sign(">") if self.text[..token.at as usize].ends_with('<') => {
                Some("write !=".to_owned())
            }
            _ => None,
        };
        ErrorAt::new(token.at, format!("expected {wanted}, found {found}")).maybe_hint(hint)
    }

    /// `condition ? a : b`, or an expression that binds tighter.
    fn expression(&mut self) -> Result<Expr, ErrorAt> {
        let condition = self.any()?;
        let Some(at) = self.take("?") else { return Ok(condition) };
        let then = self.any()?;
        self.expect(":", "`:` and a value")?;
        let otherwise = self.nested(Self::expression)?;
        let depth = condition.depth.max(then.depth).max(otherwise.depth);
        node(at, depth, Kind::Conditional(Box::new([condition, then, otherwise])))
    }

    /// Parses one level deeper, and fails at the limit.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, ErrorAt>) -> Result<T, ErrorAt> {
        if self.brackets == DEEPEST_BRACKETS {
            return Err(too_deep(self.peek().at));
        }
        self.brackets += 1;
        let read = read(self);
        self.brackets -= 1;
        read
    }

    fn any(&mut self) -> Result<Expr, ErrorAt> {
        self.joined("||", Self::all, Kind::Any)
    }

    fn all(&mut self) -> Result<Expr, ErrorAt> {
        self.joined("&&", |parser| parser.binary(0), Kind::All)
    }

    fn joined(
        &mut self,
        sign: &str,
        operand: impl Fn(&mut Self) -> Result<Expr, ErrorAt>,
        kind: impl Fn(Vec<Expr>) -> Kind,
    ) -> Result<Expr, ErrorAt> {
        let first = operand(self)?;
        let Some(at) = self.take(sign) else { return Ok(first) };
        let mut operands = vec![first, operand(self)?];
        while self.take(sign).is_some() {
            operands.push(operand(self)?);
        }
        let depth = operands.iter().map(|operand| operand.depth).max().unwrap_or(0);
        node(at, depth, kind(operands))
    }

    /// Comparisons, sums and products, by precedence.
    fn binary(&mut self, level: usize) -> Result<Expr, ErrorAt> {
        const LEVELS: [&[Operator]; 3] = [
            &[
                Operator::Equal,
                Operator::NotEqual,
                Operator::Less,
                Operator::LessOrEqual,
                Operator::Greater,
                Operator::GreaterOrEqual,
                Operator::In,
            ],
            &[Operator::Add, Operator::Subtract],
            &[Operator::Multiply, Operator::Divide, Operator::Modulo],
        ];
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.is(operator.sign())) {
            let at = self.advance().at;
            let right = self.binary(level + 1)?;
            let depth = left.depth.max(right.depth);
            left = node(at, depth, Kind::Binary { operator: *operator, operands: Box::new([left, right]) })?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, ErrorAt> {
        let (at, sign) = match &self.peek().kind {
            TokenKind::Sign(sign @ ("!" | "-")) => (self.peek().at, *sign),
            _ => return self.member(),
        };
        let mut signs = 0;
        while self.is(sign) && !self.is_negative_number() {
            self.advance();
            signs += 1;
        }
        let is_operator = (self.is("!") || self.is("-")) && !self.is_negative_number();
        let operand = if is_operator { self.nested(Self::unary)? } else { self.member()? };
        // An even number of signs cancels out.
        if signs % 2 == 0 {
            return Ok(operand);
        }
        let depth = operand.depth;
        node(
            at,
            depth,
            if sign == "!" { Kind::Not(Box::new(operand)) } else { Kind::Negate(Box::new(operand)) },
        )
    }

    /// Whether the next tokens are a minus and a number literal.
    fn is_negative_number(&self) -> bool {
        let after = self.tokens.get(self.next + 1).map(|token| &token.kind);
        self.is("-") && matches!(after, Some(TokenKind::Digits(_) | TokenKind::Literal(Literal::Double(_))))
    }

    /// A primary expression with its fields, indexes and calls.
    fn member(&mut self) -> Result<Expr, ErrorAt> {
        let mut expr = self.primary()?;
        loop {
            let depth = expr.depth;
            if let Some(at) = self.take(".") {
                let optional = self.take("?").is_some();
                let field_at = self.peek().at;
                let (field, is_word) = self.field_name()?;
                if is_word && !optional && self.is("(") {
                    let arguments = self.arguments()?;
                    let depth = arguments.iter().map(|argument| argument.depth).fold(depth, u16::max);
                    expr = node(at, depth, Kind::Call { on: Some(Box::new(expr)), name: field, arguments })?;
                } else {
                    expr = node(at, depth, Kind::Select { of: Box::new(expr), field, field_at, optional })?;
                }
            } else if let Some(at) = self.take("[") {
                let optional = self.take("?").is_some();
                let index = self.nested(Self::expression)?;
                self.expect("]", "`]`")?;
                let depth = depth.max(index.depth);
                expr = node(at, depth, Kind::Index { of: Box::new(expr), index: Box::new(index), optional })?;
            } else if self.is("{") {
                let Some(name) = qualified(&expr) else { return Ok(expr) };
                let at = expr.at;
                self.skip_braces()?;
                expr = node(at, depth, Kind::Message { name })?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn field_name(&mut self) -> Result<(String, bool), ErrorAt> {
        let name = match &self.peek().kind {
            TokenKind::Word(name) => (name.clone(), true),
            TokenKind::Escaped(name) => (name.clone(), false),
            _ => return Err(self.unexpected("a field name")),
        };
        self.advance();
        Ok(name)
    }

    fn primary(&mut self) -> Result<Expr, ErrorAt> {
        let at = self.peek().at;
        match self.peek().kind.clone() {
            TokenKind::Literal(literal) => {
                self.advance();
                node(at, 0, Kind::Literal(literal))
            }
            TokenKind::Digits(digits) => {
                self.advance();
                let number = i64::try_from(digits).map_err(|_| {
                    ErrorAt::new(at, format!("{digits} is out of range for an int"))
                        .hint(format!("write {digits}u for a uint"))
                })?;
                node(at, 0, Kind::Literal(Literal::Int(number)))
            }
            TokenKind::Word(name) => {
                self.advance();
                self.name_or_call(at, name, false)
            }
            TokenKind::Sign("-") => self.negative_number(at),
            TokenKind::Sign(".") => {
                self.advance();
                let TokenKind::Word(name) = self.peek().kind.clone() else {
                    return Err(self.unexpected("a name"));
                };
                self.advance();
                self.name_or_call(at, name, true)
            }
            TokenKind::Sign("(") => {
                self.advance();
                let inner = self.nested(Self::expression)?;
                self.expect(")", "an operator or `)`")?;
                Ok(inner)
            }
            TokenKind::Sign("[") => self.nested(Self::list),
            TokenKind::Sign("{") => self.nested(Self::map),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn negative_number(&mut self, at: u32) -> Result<Expr, ErrorAt> {
        self.advance();
        let literal = match self.advance().kind {
            TokenKind::Literal(Literal::Double(number)) => Literal::Double(-number),
            TokenKind::Digits(digits) => match 0_i64.checked_sub_unsigned(digits) {
                Some(number) => Literal::Int(number),
                None => return Err(ErrorAt::new(at, format!("-{digits} is out of range for an int"))),
            },
            _ => {
                self.next -= 1;
                return Err(self.unexpected("a value"));
            }
        };
        node(at, 0, Kind::Literal(literal))
    }

    fn name_or_call(&mut self, at: u32, name: String, absolute: bool) -> Result<Expr, ErrorAt> {
        if RESERVED.contains(&name.as_str()) {
            return Err(ErrorAt::new(at, format!("reserved identifier `{name}`"))
                .maybe_hint(hints::for_reserved(&name)));
        }
        if !self.is("(") {
            return node(at, 0, Kind::Name { name, absolute });
        }
        let arguments = self.arguments()?;
        let depth = arguments.iter().map(|argument| argument.depth).max().unwrap_or(0);
        node(at, depth, Kind::Call { on: None, name, arguments })
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, ErrorAt> {
        self.nested(|parser| {
            parser.advance();
            let mut arguments = Vec::new();
            if parser.take(")").is_some() {
                return Ok(arguments);
            }
            loop {
                arguments.push(parser.expression()?);
                if parser.take(",").is_none() {
                    parser.expect(")", "an operator, `,` or `)`")?;
                    return Ok(arguments);
                }
            }
        })
    }

    fn list(&mut self) -> Result<Expr, ErrorAt> {
        let at = self.advance().at;
        let mut elements = Vec::new();
        while self.take("]").is_none() {
            let optional = self.take("?").is_some();
            elements.push(ElementExpr { value: self.expression()?, optional });
            if self.take(",").is_none() {
                self.expect("]", "an operator, `,` or `]`")?;
                break;
            }
        }
        let depth = elements.iter().map(|element| element.value.depth).max().unwrap_or(0);
        node(at, depth, Kind::List(elements))
    }

    fn map(&mut self) -> Result<Expr, ErrorAt> {
        let at = self.advance().at;
        let mut fields = Vec::new();
        while self.take("}").is_none() {
            let optional = self.take("?").is_some();
            let key = self.expression()?;
            self.expect(":", "`:` and a value")?;
            fields.push(FieldExpr { key, value: self.expression()?, optional });
            if self.take(",").is_none() {
                self.expect("}", "an operator, `,` or `}`")?;
                break;
            }
        }
        let depth = fields.iter().map(|field| field.key.depth.max(field.value.depth)).max().unwrap_or(0);
        node(at, depth, Kind::Map(fields))
    }

    /// Skips the fields of a message. The compiler rejects it with a better error.
    fn skip_braces(&mut self) -> Result<(), ErrorAt> {
        let mut open = 0;
        loop {
            match self.peek().kind {
                TokenKind::Sign("{") => open += 1,
                TokenKind::Sign("}") => open -= 1,
                TokenKind::End => return Err(self.unexpected("`}`")),
                _ => {}
            }
            self.advance();
            if open == 0 {
                return Ok(());
            }
        }
    }
}

/// The dotted name that an expression denotes: `a.b.c`.
fn qualified(expr: &Expr) -> Option<String> {
    match &expr.kind {
        Kind::Name { name, .. } => Some(name.clone()),
        Kind::Select { of, field, optional: false, .. } => Some(format!("{}.{field}", qualified(of)?)),
        _ => None,
    }
}

fn node(at: u32, below: u16, kind: Kind) -> Result<Expr, ErrorAt> {
    if below >= DEEPEST {
        return Err(too_deep(at));
    }
    Ok(Expr { at, depth: below + 1, kind })
}

fn too_deep(at: u32) -> ErrorAt {
    ErrorAt::new(at, "the expression is nested too deeply here").hint("split it into several expressions")
}
